import itertools

import pytest
from benchmarks.peers.lanes.bodies import END, PROBE, RING, numbered, read_timed, repeated, timed
from benchmarks.peers.lanes.driving import WINDOW
from benchmarks.peers.lanes.rows import ROWS

SIZES = sorted({int(row.options["size"]) for row in ROWS.values()})


@pytest.mark.parametrize("size", SIZES)
def test_no_two_bodies_on_their_way_are_equal(size: int) -> None:
    bodies = numbered(size)
    assert {len(body) for body in bodies} == {size}
    assert len({*bodies, PROBE, END}) == RING + 2
    assert RING > WINDOW


def test_bodies_begin_again_after_the_last() -> None:
    bodies = numbered(16)
    assert list(itertools.islice(repeated(16), RING + 2)) == [*bodies, *bodies[:2]]


@pytest.mark.parametrize("size", SIZES)
def test_a_timed_body_says_which_it_is_and_when_it_was_made(size: int) -> None:
    first, second = timed(7, size), timed(8, size)
    assert len(first) == size
    assert read_timed(first)[0] == 7
    assert read_timed(first)[1] <= read_timed(second)[1]
