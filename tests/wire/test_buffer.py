import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.wire.buffer import Spare, Writer


def test_a_new_writer_is_empty_and_has_room() -> None:
    writer = Writer()
    assert (writer.size, writer.take()) == (0, b"")
    assert len(writer.data) > 0


@given(st.lists(st.binary(max_size=700), max_size=8))
def test_what_is_put_is_taken_in_order(parts: list[bytes]) -> None:
    writer = Writer()
    for part in parts:
        writer.put(part)
    assert writer.take() == b"".join(parts)


@pytest.mark.parametrize("buffer", [bytes, bytearray])
def test_bytes_and_bytearrays_can_be_put(buffer: type) -> None:
    writer = Writer()
    writer.put(buffer(b"abc"))
    assert writer.take() == b"abc"


def test_reserved_room_follows_what_was_written() -> None:
    writer = Writer()
    writer.put(b"abc")
    assert writer.reserve(4) == 3
    assert writer.size == 7


def test_reserved_room_is_for_the_caller_to_fill() -> None:
    writer = Writer()
    writer.put(b"ab")
    at = writer.reserve(2)
    writer.data[at : at + 2] = b"XY"
    writer.put(b"cd")
    assert writer.take() == b"abXYcd"


def test_room_that_is_exactly_enough_does_not_grow() -> None:
    writer = Writer()
    room = len(writer.data)
    writer.reserve(room)
    assert len(writer.data) == room


def test_room_doubles_when_one_byte_is_missing() -> None:
    writer = Writer()
    room = len(writer.data)
    writer.reserve(room)
    writer.reserve(1)
    assert len(writer.data) == 2 * room


def test_room_grows_at_once_to_what_a_large_write_needs() -> None:
    writer = Writer()
    writer.put(b"head")
    writer.put(bytes(1_000_000))
    assert len(writer.data) >= writer.size == 1_000_004


def test_growing_keeps_what_was_written() -> None:
    writer = Writer()
    writer.put(b"head")
    writer.reserve(len(writer.data))
    assert writer.data[:4] == b"head"


def test_a_taken_writer_is_empty_and_keeps_its_room() -> None:
    writer = Writer()
    writer.put(bytes(5_000))
    room = len(writer.data)
    writer.take()
    assert (writer.size, len(writer.data)) == (0, room)


def test_what_was_taken_does_not_change_with_the_writer() -> None:
    writer = Writer()
    writer.put(b"first")
    taken = writer.take()
    writer.put(b"other")
    assert (type(taken), taken) == (bytes, b"first")


def test_room_is_not_negative() -> None:
    with pytest.raises(ValueError, match="cannot reserve -1 bytes"):
        Writer().reserve(-1)


def test_a_spare_writer_is_the_same_again() -> None:
    spare = Spare()
    writer = spare.take()
    assert spare.take() is not writer
    spare.give(writer)
    assert spare.take() is writer


def test_there_are_as_many_spare_writers_as_are_taken() -> None:
    spare = Spare()
    writers = [spare.take() for _ in range(100)]
    assert len({id(writer) for writer in writers}) == 100


def test_no_more_spare_writers_are_kept_than_wanted() -> None:
    spare = Spare(at_most=10)
    writers = [spare.take() for _ in range(12)]
    for writer in writers:
        spare.give(writer)
    kept = {id(spare.take()) for _ in range(12)} & {id(writer) for writer in writers}
    assert len(kept) == 10


def test_a_writer_that_has_grown_very_large_is_not_kept() -> None:
    spare = Spare()
    writer = spare.take()
    writer.reserve(1 << 20)
    spare.give(writer)
    assert spare.take() is not writer


def test_what_was_written_last_can_be_cut_back() -> None:
    writer = Writer()
    writer.put(b"kept, not kept")
    writer.cut_back(4)
    assert writer.take() == b"kept"


@pytest.mark.parametrize("size", [-1, 5])
def test_nothing_is_cut_back_to_where_it_never_was(size: int) -> None:
    writer = Writer()
    writer.put(b"four")
    with pytest.raises(ValueError, match=f"cannot truncate 4 bytes to {size}"):
        writer.cut_back(size)
