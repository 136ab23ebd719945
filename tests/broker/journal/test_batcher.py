import pytest

from weft.broker.delivery.arena import Arena
from weft.broker.journal.batcher import (
    ARRIVED,
    BLOCK_BYTES,
    BLOCK_HEADER_BYTES,
    HELD_MAX_BYTES,
    BlockRange,
    Journal,
    JournalBatch,
)
from weft.errors import BadSubject
from weft.wire.frames import Decoder, Kind, Stamp, encode, stamp_frame

FRAME = encode(Kind.MESSAGE, b"a.b", b"x" * 65)  # 100 bytes


class Asking:
    """Whoever asked to be told."""

    def __init__(self) -> None:
        self.told: list[bytes] = []

    def owe(self, frames: bytes) -> None:
        self.told.append(frames)


class Resting:
    """Whoever is not read from."""

    def __init__(self) -> None:
        self.resumed = 0

    def resume(self) -> None:
        self.resumed += 1


class Desk:
    """A journal, and whoever writes it, slowly."""

    def __init__(self, position: int = 0, arena_bytes: int = 1 << 20) -> None:
        self.arena = Arena(arena_bytes)
        self.batches: list[JournalBatch] = []
        self.journal = Journal([b"a.>"], position, self.arena, self.batches.append)

    def turn(self, *frames: bytes) -> None:
        """One turn of the loop that brings these frames."""
        for frame in frames:
            self.take(frame)
        self.end_turn()

    def take(self, frame: bytes) -> None:
        start = self.arena.put(frame)
        self.journal.take(start, start + len(frame), 1)

    def end_turn(self) -> None:
        self.journal.keep()
        for outbox in self.arena.waiting:
            outbox.settle(0)
        self.arena.reset()


def frames_in(batch: JournalBatch) -> list[bytes]:
    decoder = Decoder()
    for block in batch.blocks:
        decoder.feed(bytes(batch.data[block.start + BLOCK_HEADER_BYTES : block.end]))
    return list(iter(decoder.next_frame, None))


def test_what_is_wanted_is_said_by_patterns() -> None:
    journal = Desk().journal
    assert journal.wants(b"a.b.c")
    assert not journal.wants(b"b.a")


def test_a_pattern_must_be_legal() -> None:
    with pytest.raises(BadSubject, match=r"a\.\.b"):
        Journal([b"a..b"], 0, Arena(), print)


def test_a_turn_without_messages_writes_nothing() -> None:
    desk = Desk()
    desk.turn()
    assert desk.batches == []


def test_messages_of_a_turn_are_one_block_with_room_for_its_header() -> None:
    desk = Desk(position=7)
    other = encode(Kind.MESSAGE, b"a.c")
    desk.turn(FRAME, other)
    (batch,) = desk.batches
    size = BLOCK_HEADER_BYTES + len(FRAME) + len(other)
    assert batch.blocks == [BlockRange(0, size, 7, 2)]
    assert (batch.size, batch.next_position) == (size, 9)
    assert frames_in(batch) == [FRAME, other]
    assert desk.journal.position == 9


def test_frames_that_lie_apart_are_kept_in_order() -> None:
    desk = Desk()
    for number in range(3):
        desk.arena.put(b"not for the journal")
        desk.take(encode(Kind.MESSAGE, b"a.b", bytes([number])))
    desk.end_turn()
    assert frames_in(desk.batches[0]) == [
        encode(Kind.MESSAGE, b"a.b", bytes([number])) for number in range(3)
    ]


def test_what_comes_while_a_batch_is_written_is_the_next_batch() -> None:
    desk = Desk()
    desk.turn(FRAME)
    desk.turn(FRAME, FRAME)
    desk.turn(FRAME)
    assert len(desk.batches) == 1
    desk.journal.written(desk.batches.pop())
    assert [each.frames for each in desk.batches[0].blocks] == [3]
    assert desk.batches[0].blocks[0].first == 1
    desk.journal.written(desk.batches.pop())
    assert desk.batches == []
    desk.turn(FRAME)
    assert desk.batches[0].blocks[0].first == 4


def test_what_a_turn_has_taken_but_not_kept_is_not_in_a_batch_that_ends_meanwhile() -> None:
    desk = Desk()
    desk.turn(FRAME)
    desk.turn(FRAME)
    desk.take(FRAME)
    desk.journal.written(desk.batches.pop())
    assert [(each.first, each.frames) for each in desk.batches[0].blocks] == [(1, 1)]
    desk.end_turn()
    desk.journal.written(desk.batches.pop())
    assert [(each.first, each.frames) for each in desk.batches[0].blocks] == [(2, 1)]


def test_a_batch_is_filled_again_where_its_writer_would_have_it() -> None:
    desk = Desk()
    desk.turn(FRAME)
    (first,) = desk.batches
    first.lead = 100
    assert (first.start, first.end) == (0, BLOCK_HEADER_BYTES + len(FRAME))
    desk.journal.written(desk.batches.pop())
    assert desk.journal.is_clean()
    desk.turn(FRAME)
    desk.journal.written(desk.batches.pop())
    desk.turn(FRAME)
    (again,) = desk.batches
    assert again is first
    assert (again.start, again.size) == (100, BLOCK_HEADER_BYTES + len(FRAME))
    assert frames_in(again) == [FRAME]


def test_it_is_clean_when_everything_is_written() -> None:
    desk = Desk()
    assert desk.journal.is_clean()
    desk.take(FRAME)
    assert not desk.journal.is_clean()
    desk.end_turn()
    assert not desk.journal.is_clean()
    desk.journal.written(desk.batches.pop())
    assert desk.journal.is_clean()


def test_a_large_batch_has_several_blocks() -> None:
    desk = Desk()
    desk.turn(FRAME)
    for _ in range(3):
        desk.turn(*[FRAME] * (BLOCK_BYTES // len(FRAME) + 1))
    desk.journal.written(desk.batches.pop())
    (batch,) = desk.batches
    per_block = BLOCK_BYTES // len(FRAME) + 1
    assert [(each.first, each.frames) for each in batch.blocks] == [
        (1 + number * per_block, per_block) for number in range(3)
    ]
    assert len(frames_in(batch)) == 3 * per_block


def test_a_publisher_is_held_while_too_much_waits() -> None:
    desk = Desk(arena_bytes=4 << 20)
    desk.turn(FRAME)
    resting = Resting()
    while not desk.journal.is_full():
        desk.turn(*[FRAME] * 20_000)
    desk.journal.hold(resting)
    desk.turn(FRAME)
    assert resting.resumed == 0
    desk.journal.written(desk.batches.pop())
    assert resting.resumed == 1
    assert not desk.journal.is_full()
    assert desk.batches[0].size > HELD_MAX_BYTES


def test_what_comes_from_elsewhere_is_kept_in_its_place_and_says_so() -> None:
    desk = Desk()
    desk.take(FRAME)
    start = desk.arena.put(FRAME + FRAME)
    desk.journal.take_arrived(start, desk.arena.fill, 2)
    desk.take(FRAME)
    desk.end_turn()
    start = desk.arena.put(FRAME)
    desk.journal.take_arrived(start, desk.arena.fill, 1)
    desk.end_turn()
    first, second = desk.batches[0], desk.batches[-1]
    assert [frame[5] for frame in frames_in(first)] == [0, ARRIVED, ARRIVED, 0]
    desk.journal.written(first)
    assert [frame[5] for frame in frames_in(desk.batches[-1])] == [ARRIVED]
    assert desk.journal.position == 5
    assert second is first


def test_whoever_waits_does_so_for_what_was_taken_before_others_arrived() -> None:
    desk = Desk()
    waiting = Asking()
    desk.take(FRAME)
    desk.journal.ask(waiting).put(b"ok")
    start = desk.arena.put(FRAME)
    desk.journal.take_arrived(start, desk.arena.fill, 1)
    desk.end_turn()
    (batch,) = desk.batches
    assert batch.is_awaited
    desk.journal.safe_until(1)
    assert waiting.told == [b"ok"]


def test_what_comes_from_elsewhere_is_missed_while_too_much_waits() -> None:
    desk = Desk(arena_bytes=4 << 20)
    desk.turn(FRAME)
    while not desk.journal.is_full():
        desk.turn(*[FRAME] * 20_000)
    before = desk.journal.position
    start = desk.arena.put(FRAME)
    desk.journal.take_arrived(start, desk.arena.fill, 1)
    assert (desk.journal.position, desk.journal.missed) == (before, 1)


def test_whoever_asked_is_told_when_its_message_is_safe() -> None:
    desk = Desk()
    first, second = Asking(), Asking()
    desk.take(FRAME)
    desk.journal.ask(first).put(b"ok 0")
    desk.take(FRAME)
    desk.journal.ask(second).put(b"ok 1")
    desk.end_turn()
    desk.journal.safe_until(0)
    assert (first.told, second.told) == ([], [])
    desk.journal.safe_until(1)
    assert (first.told, second.told) == ([b"ok 0"], [])
    desk.journal.safe_until(2)
    assert (first.told, second.told) == ([b"ok 0"], [b"ok 1"])


def test_whoever_asks_several_times_in_a_turn_is_told_once() -> None:
    desk = Desk()
    asking, other = Asking(), Asking()
    for number in range(3):
        desk.take(FRAME)
        desk.journal.ask(asking).put(b"ok %d " % number)
    desk.end_turn()
    desk.take(FRAME)
    desk.journal.ask(asking).put(b"ok 3")
    desk.take(FRAME)
    desk.journal.ask(other).put(b"ok 4")
    desk.end_turn()
    desk.journal.safe_until(2)
    assert asking.told == []
    desk.journal.safe_until(4)
    assert (asking.told, other.told) == ([b"ok 0 ok 1 ok 2 ", b"ok 3"], [])
    desk.journal.safe_until(5)
    assert other.told == [b"ok 4"]


def test_a_batch_says_if_somebody_waits_for_it() -> None:
    desk = Desk()
    desk.turn(FRAME)
    desk.take(FRAME)
    desk.journal.ask(Asking()).put(b"ok")
    first = desk.batches.pop()
    # The batch that it is copied to is another one by then.
    desk.end_turn()
    desk.turn(FRAME)
    assert not first.is_awaited
    desk.journal.written(first)
    (second,) = desk.batches
    assert second.is_awaited
    desk.journal.written(second)
    desk.turn(FRAME)
    assert not desk.batches[-1].is_awaited


def test_one_that_asks_in_the_turn_of_a_failure_is_told_when_it_is_over() -> None:
    desk = Desk()
    asking = Asking()
    desk.take(FRAME)
    desk.journal.ask(asking).put(b"lost")
    desk.journal.failed("broken")
    desk.journal.recovered()
    desk.take(FRAME)
    desk.journal.ask(asking).put(b"ok")
    desk.end_turn()
    desk.journal.safe_until(2)
    assert asking.told == [b"ok"]


def test_while_it_fails_messages_are_missed_and_whoever_waits_is_told() -> None:
    desk = Desk()
    asking = Asking()
    desk.take(FRAME)
    desk.journal.ask(asking).put(b"ok")
    desk.end_turn()
    (asked,) = desk.journal.failed("no space left")
    assert (asked.position, asked.peer, asked.oks.take()) == (0, asking, b"ok")
    assert asking.told == []
    assert str(desk.journal.failure()) == (
        "the journal cannot be written: no space left; the message was not delivered"
    )
    desk.turn(FRAME, FRAME)
    assert (desk.journal.missed, desk.journal.position) == (2, 1)
    desk.journal.recovered()
    desk.journal.written(desk.batches.pop())
    desk.turn(FRAME)
    assert (desk.journal.missed, desk.journal.position) == (2, 2)
    assert desk.batches[0].blocks[0].first == 1
    assert desk.journal.problem == ""


def test_what_was_taken_before_it_failed_is_still_kept() -> None:
    desk = Desk()
    desk.turn(FRAME)
    desk.take(FRAME)
    desk.journal.failed("broken")
    desk.end_turn()
    desk.journal.recovered()
    desk.journal.written(desk.batches.pop())
    assert [(each.first, each.frames) for each in desk.batches[0].blocks] == [(1, 1)]


def stamped(time_ns: int) -> bytes:
    frame = bytearray(FRAME)
    stamp_frame(frame, 0, Stamp(1, publisher=1, sequence=1, time_ns=time_ns))
    return bytes(frame)


def test_a_batch_knows_the_latest_time_of_its_messages() -> None:
    desk = Desk()
    desk.turn(stamped(5), stamped(9), stamped(7))
    # The first is being written, so these two turns are one batch; the clock goes back.
    desk.turn(stamped(30), stamped(20))
    desk.turn(stamped(10))
    first = desk.batches.pop()
    assert first.latest_ns == 9
    desk.journal.written(first)
    (second,) = desk.batches
    assert second.latest_ns == 30
    assert first.latest_ns == 0


def test_what_is_taken_before_a_batch_is_passed_on_belongs_to_the_next() -> None:
    desk = Desk()
    desk.turn(stamped(5))
    desk.turn(stamped(6))
    desk.take(stamped(99))
    desk.journal.written(desk.batches.pop())
    assert desk.batches.pop().latest_ns == 6


def test_the_latest_time_may_be_that_of_what_arrived() -> None:
    desk = Desk()
    frames = stamped(40) + stamped(50) + stamped(45)
    start = desk.arena.put(frames)
    desk.journal.take_arrived(start, start + len(frames), 3)
    desk.turn(stamped(7))
    assert desk.batches[0].latest_ns == 50
