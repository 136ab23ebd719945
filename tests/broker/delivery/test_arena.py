import pytest

from weft.broker.delivery.arena import Arena
from weft.broker.delivery.outbox import Outbox
from weft.broker.delivery.policy import Bounds, Policy
from weft.wire.frames import BODY_LIMIT_BYTES, HEADER_BYTES, NAME_MAX_BYTES


def test_bytes_are_put_one_after_the_other() -> None:
    arena = Arena(16)
    assert arena.put(b"hello") == 0
    assert arena.put(b"world") == 5
    assert arena.data[:10] == b"helloworld"
    assert arena.room() == 6


@pytest.mark.parametrize("size", [0, -1, (1 << 30) + 1])
def test_an_arena_that_spans_could_not_number_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"arena of {size} bytes"):
        Arena(size)


def test_bytes_that_do_not_fit_the_turn_are_not_taken() -> None:
    arena = Arena(8)
    arena.put(b"12345")
    assert arena.put(b"6789") == -1
    assert arena.fill == 5


def test_a_reset_makes_room_for_the_next_turn() -> None:
    arena = Arena(8)
    arena.put(b"12345678")
    outbox = Outbox(arena, Bounds())
    outbox.push(0, 8, Policy.CUT)
    outbox.sent(8)
    arena.reset()
    assert arena.put(b"87654321") == 0
    assert arena.span_count == 0
    assert arena.waiting == []


def test_a_turn_is_not_over_while_an_outbox_has_spans_of_it() -> None:
    arena = Arena(8)
    arena.put(b"12345678")
    outbox = Outbox(arena, Bounds())
    outbox.push(0, 8, Policy.CUT)
    outbox.sent(7)
    with pytest.raises(ValueError, match="1 outboxes still hold spans"):
        arena.reset()
    outbox.sent(1)
    arena.reset()


@pytest.mark.parametrize("count", [-1, 9])
def test_no_more_can_be_read_than_there_was_room_for(count: int) -> None:
    arena = Arena(10)
    arena.took(2)
    with pytest.raises(ValueError, match=f"{count} bytes are not in the 8"):
        arena.took(count)
    arena.took(8)
    assert arena.room() == 0


def test_the_same_stretch_is_cut_once_in_a_turn() -> None:
    arena = Arena(8)
    arena.put(b"12345678")
    first = arena.shared_cut(2, 3)
    assert first.frames == b"345"
    assert arena.shared_cut(2, 3) is first
    arena.reset()
    arena.put(b"abcdefgh")
    assert arena.shared_cut(2, 3).frames == b"cde"


@pytest.mark.parametrize(("one", "other"), [((0, 9), (1, 0)), ((0, 9), (1, 1)), ((1, 2), (2, 1))])
def test_different_stretches_are_different_cuts(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    arena = Arena(9)
    arena.put(b"123456789")
    assert arena.shared_cut(*one).frames != arena.shared_cut(*other).frames


def test_there_are_as_many_spans_as_a_turn_needs() -> None:
    arena = Arena(16)
    numbers = [arena.add_span(at % 16, 1, Policy.CUT) for at in range(5000)]
    assert numbers == list(range(5000))


def test_an_arena_has_room_for_the_largest_frame() -> None:
    assert Arena().room() >= HEADER_BYTES + 2 * NAME_MAX_BYTES + BODY_LIMIT_BYTES


def test_spans_stay_as_they_are_when_there_are_more() -> None:
    arena = Arena(16)
    arena.put(b"--one--two------")
    outbox = Outbox(arena, Bounds())
    outbox.push(2, 3, Policy.CUT)
    outbox.push(7, 3, Policy.CUT)
    for _ in range(5000):
        arena.add_span(0, 1, Policy.CUT)
    start = outbox.gather()
    assert arena.data[start : start + outbox.gathered] == b"onetwo"


def test_room_can_be_set_aside_and_filled_later() -> None:
    arena = Arena(8)
    arena.put(b"12")
    assert arena.reserve(4) == 2
    assert arena.reserve(0) == 6
    assert arena.put(b"78") == 6
    assert arena.room() == 0


@pytest.mark.parametrize("length", [-1, 7, 1 << 40])
def test_no_more_room_is_set_aside_than_there_is(length: int) -> None:
    arena = Arena(8)
    arena.put(b"12")
    assert arena.reserve(length) == -1
    assert arena.fill == 2
