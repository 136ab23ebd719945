"""What waits at the end of a lane that receives, what of it counts, and what nobody hears."""

import pytest

from weft.client.lanes.receive_stream import In, Unheard
from weft.wire.frames import Kind, encode

ONE, TWO, THREE = [b"one"], [b"two"], [b"three"]


def by_lane() -> In:
    """One that takes from the lane."""
    incoming = In()
    incoming.switched_by_gateway(1)
    incoming.switched_by_lane(1)
    assert incoming.held_bytes == 0
    return incoming


@pytest.mark.req("HUB-22")
def test_what_comes_through_the_gateway_too_early_counts_until_its_turn() -> None:
    incoming = by_lane()
    incoming.switched_by_gateway(2)
    marked = incoming.held_bytes
    assert marked > 0
    assert incoming.by_gateway(ONE) == []
    assert incoming.held_bytes > marked + len(ONE[0])
    assert incoming.switched_by_lane(2) == [ONE]
    assert incoming.held_bytes == 0


@pytest.mark.req("HUB-22")
def test_a_tail_counts_until_its_turn() -> None:
    incoming = In()
    incoming.tail(0)
    for _ in range(100):
        assert incoming.by_tail([bytes(1000)]) == []
    assert incoming.held_bytes >= 100_000
    incoming.switched_by_gateway(1)
    assert incoming.held_bytes >= 100_000
    incoming.over()
    assert incoming.held_bytes == 0
    assert incoming.is_cut_short


@pytest.mark.req("HUB-22")
def test_a_tail_that_is_next_is_not_held() -> None:
    incoming = by_lane()
    assert incoming.by_lane(ONE) == [ONE]
    incoming.tail(0)
    # The change of way and the first message are known.
    incoming.switched_by_gateway(1)
    assert incoming.by_tail(ONE) == []
    assert incoming.by_tail(TWO) == [TWO]
    assert incoming.held_bytes == 0
    assert incoming.taken == 3


@pytest.mark.req("HUB-22")
def test_after_the_end_what_comes_through_the_gateway_is_held_no_more() -> None:
    incoming = by_lane()
    incoming.switched_by_lane(2)
    incoming.end(2)
    assert incoming.is_over
    # Both are late: the lane was faster.
    assert incoming.switched_by_gateway(2) == []
    assert incoming.by_gateway(ONE) == [ONE]
    assert incoming.tail(0) == []
    assert incoming.by_gateway(TWO) == [TWO]
    assert incoming.held_bytes == 0


OLD, NEW = ([encode(Kind.MESSAGE, subject, b"1")] for subject in (b"old", b"new"))


def is_new(run: list[bytes]) -> bool:
    return run is NEW


@pytest.mark.req("HUB-22")
def test_messages_from_the_gateway_that_wait_are_dropped_with_their_last_subscription() -> None:
    incoming = by_lane()
    incoming.switched_by_gateway(2)
    assert incoming.by_gateway(OLD) == incoming.by_gateway(NEW) == []
    taken = incoming.taken
    incoming.withdraw(is_new)
    assert incoming.by_gateway(Unheard(1)) == []
    assert incoming.switched_by_lane(2) == [NEW]
    assert incoming.taken == taken + 1
    assert incoming.held_bytes == 0


@pytest.mark.req("HUB-22")
def test_messages_by_the_lane_that_wait_count_as_taken_although_they_are_dropped() -> None:
    incoming = In()
    incoming.switched_by_lane(1)
    assert incoming.by_lane(OLD) == incoming.by_lane(NEW) == []
    assert incoming.arrived == 3
    incoming.withdraw(is_new)
    assert incoming.arrived == 3
    assert incoming.switched_by_gateway(1) == [NEW]
    assert incoming.taken == incoming.arrived == 3
    assert incoming.held_bytes == 0


@pytest.mark.req("HUB-22")
def test_messages_of_a_tail_that_are_dropped_free_their_room() -> None:
    incoming = In()
    incoming.tail(0)
    assert incoming.by_tail(OLD) == incoming.by_tail(NEW) == []
    before = incoming.held_bytes
    incoming.withdraw(is_new)
    assert incoming.held_bytes == before - len(OLD[0])
    incoming.over()
    assert incoming.released() == [[NEW]]


@pytest.mark.req("HUB-21")
@pytest.mark.parametrize("way", ["lane", "tail"])
def test_what_nobody_is_to_hear_counts_as_taken(way: str) -> None:
    incoming = by_lane()
    if way == "tail":
        incoming.tail(incoming.taken)
        assert incoming.by_tail(Unheard(1)) == []
        assert incoming.by_tail(THREE) == [THREE]
    else:
        assert incoming.by_lane(Unheard(1)) == []
        assert incoming.by_lane(THREE) == [THREE]
    assert incoming.taken == 3
    assert incoming.held_bytes == 0
    incoming.end(3)
    assert incoming.missing == 0
