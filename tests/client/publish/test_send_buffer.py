import threading

import pytest

from weft.client.options import WhenFull
from weft.client.publish.encode import message_frame
from weft.client.publish.send_buffer import (
    CHUNK_BYTES,
    CONTROL_RESERVE_BYTES,
    SendBuffer,
)
from weft.errors import BadField, NotOpen, Overloaded
from weft.wire import frames
from weft.wire.frames import Decoder, Flag, Kind
from weft.wire.message.message import Message

FRAME = message_frame("a.b", b"x" * 100)
COST = len(FRAME)
INBOX = b"_INBOX.1"


def nothing(*_: object) -> None:
    """Whatever."""


def outgoing(limit_bytes: int = 10 * COST, when_full: WhenFull = "raise") -> SendBuffer:
    return SendBuffer(limit_bytes, when_full, nothing, nothing)


def fill(buffer: SendBuffer) -> int:
    count = 0
    while buffer.put(FRAME):
        count += 1
    return count


def taken(buffer: SendBuffer) -> list[bytes]:
    decoder = Decoder()
    while buffer.pass_on(decoder.feed):
        pass
    buffer.sent()
    return list(iter(decoder.next_frame, None))


def test_what_is_put_is_taken_in_order() -> None:
    buffer = outgoing()
    ping = frames.encode(Kind.PING)
    buffer.put(FRAME)
    buffer.put_control(ping)
    buffer.put(FRAME)
    assert taken(buffer) == [FRAME, ping, FRAME]
    assert buffer.held_bytes == 0


def test_much_is_taken_in_chunks() -> None:
    buffer = outgoing(limit_bytes=4 * CHUNK_BYTES)
    count = fill(buffer)
    first = buffer.pass_on(nothing)
    assert CHUNK_BYTES <= first < CHUNK_BYTES + len(FRAME)
    assert first // len(FRAME) + len(taken(buffer)) == count


def test_it_holds_no_more_than_its_limit() -> None:
    assert fill(outgoing(limit_bytes=10 * COST)) == 10
    assert fill(outgoing(limit_bytes=11 * COST - 1)) == 10


def test_what_was_taken_counts_until_it_has_left() -> None:
    buffer = outgoing()
    fill(buffer)
    buffer.pass_on(nothing)
    assert not buffer.put(FRAME)
    assert not buffer.has_room(len(FRAME))
    buffer.sent()
    assert buffer.has_room(len(FRAME))
    assert fill(buffer) == 10


def test_full_it_raises_if_that_was_chosen() -> None:
    buffer = outgoing(when_full="raise")
    fill(buffer)
    with pytest.raises(Overloaded, match=f"holds {10 * COST} of {10 * COST} bytes"):
        buffer.offer(FRAME)


def test_full_it_drops_and_counts_if_that_was_chosen() -> None:
    said: list[str] = []
    buffer = SendBuffer(10 * COST, "drop", nothing, lambda: said.append("dropping"))
    fill(buffer)
    assert all(buffer.offer(FRAME) for _ in range(5))
    assert buffer.dropped == 5
    assert said == ["dropping"]
    assert len(taken(buffer)) == 10


def test_dropping_is_said_again_after_it_had_stopped() -> None:
    said: list[str] = []
    buffer = SendBuffer(10 * COST, "drop", nothing, lambda: said.append("dropping"))
    for _ in range(2):
        fill(buffer)
        buffer.offer(FRAME)
        taken(buffer)
        buffer.offer(FRAME)
    assert said == ["dropping"] * 2


def test_full_it_asks_to_wait_if_that_was_chosen() -> None:
    buffer = outgoing(when_full="block")
    fill(buffer)
    assert not buffer.offer(FRAME)


def test_a_thread_waits_for_room() -> None:
    buffer = outgoing(when_full="block")
    fill(buffer)
    done = threading.Event()

    def publish() -> None:
        buffer.put_waiting(FRAME, 30)
        done.set()

    thread = threading.Thread(target=publish)
    thread.start()
    assert len(taken(buffer)) == 10
    assert done.wait(30)
    thread.join(30)
    assert taken(buffer) == [FRAME]


def test_a_thread_does_not_wait_for_ever() -> None:
    buffer = outgoing(when_full="block")
    fill(buffer)
    with pytest.raises(Overloaded, match=r"after 0\.01 s"):
        buffer.put_waiting(FRAME, 0.01)


def test_a_thread_that_is_always_overtaken_does_not_wait_for_ever() -> None:
    class Overtaken(SendBuffer):
        """As if others took the room whenever there is some."""

        def offer(self, frame: bytes) -> bool:  # noqa: ARG002
            return False

    buffer = Overtaken(10 * COST, "block", nothing, nothing)
    with pytest.raises(Overloaded, match=r"after 0\.01 s"):
        buffer.put_waiting(FRAME, 0.01)


def test_a_waiting_thread_is_told_of_the_end() -> None:
    buffer = outgoing(when_full="block")
    fill(buffer)
    errors: list[Exception] = []

    def publish() -> None:
        try:
            buffer.put_waiting(FRAME, 30)
        except NotOpen as error:
            errors.append(error)

    thread = threading.Thread(target=publish)
    thread.start()
    buffer.close()
    thread.join(30)
    assert len(errors) == 1


def test_closed_it_takes_nothing_but_can_be_emptied() -> None:
    buffer = outgoing()
    buffer.put(FRAME)
    buffer.close()
    with pytest.raises(NotOpen):
        buffer.put(FRAME)
    assert taken(buffer) == [FRAME]


def test_the_loop_is_woken_once_until_it_comes() -> None:
    woken: list[int] = []
    buffer = SendBuffer(10 * COST, "raise", lambda: woken.append(1), nothing)
    buffer.put(FRAME)
    buffer.put(FRAME)
    buffer.put_control(FRAME)
    assert woken == [1]
    taken(buffer)
    buffer.put_control(FRAME)
    assert woken == [1, 1]


def test_control_frames_have_a_reserve_and_no_more() -> None:
    buffer = outgoing()
    fill(buffer)
    ping = frames.encode(Kind.PING)
    for _ in range(CONTROL_RESERVE_BYTES // len(ping)):
        buffer.put_control(ping)
    with pytest.raises(Overloaded):
        buffer.put_control(ping)


def test_what_the_gateway_would_not_take_is_refused_here() -> None:
    buffer = outgoing()
    buffer.body_limit_bytes = 99
    with pytest.raises(BadField, match="body of 100 bytes is over the gateway's limit of 99"):
        buffer.put(FRAME)


def test_a_body_within_the_limit_is_taken_whatever_its_header() -> None:
    buffer = outgoing()
    buffer.body_limit_bytes = 100
    assert buffer.put(FRAME)


def test_what_never_fits_is_refused_and_not_waited_for() -> None:
    with pytest.raises(BadField, match=f"never fits a publish buffer of {COST - 1}"):
        outgoing(limit_bytes=COST - 1, when_full="block").offer(FRAME)


def test_only_plain_messages_outlive_a_connection() -> None:
    buffer = outgoing()
    kept = [FRAME, message_frame("a", Message(), "own.reply")]
    for frame in (
        message_frame("a", b"", flags=Flag.ANSWER),
        message_frame("a", b"", "_INBOX.1.7", Flag.REQUEST),
        message_frame("a", b"", "_INBOX.1.8"),
        frames.encode(Kind.PING),
        frames.encode(Kind.SUBSCRIBE, b"a"),
        *kept,
    ):
        buffer.put(frame)
    buffer.lost(INBOX)
    assert buffer.held_bytes == sum(len(frame) for frame in kept)
    assert taken(buffer) == kept


def test_what_was_said_in_a_channel_is_dropped_with_its_connection() -> None:
    buffer = outgoing()
    channel = f"_CHANNEL.{'0' * 32}.a"
    # Of the second one whoever awaits its answer is told.
    for frame in (message_frame(channel, b""), message_frame(channel, b"", flags=Flag.ANSWER)):
        buffer.put(frame)
    buffer.lost(INBOX)
    assert (buffer.held_bytes, buffer.dropped) == (0, 1)


def test_what_a_lost_connection_had_taken_makes_room() -> None:
    buffer = outgoing()
    fill(buffer)
    buffer.pass_on(nothing)
    buffer.lost(INBOX)
    assert fill(buffer) == 10


def test_many_threads_lose_nothing_and_keep_their_order() -> None:
    buffer = outgoing(limit_bytes=50 * COST, when_full="block")
    woken = threading.Semaphore(0)
    buffer = SendBuffer(50 * COST, "block", woken.release, nothing)
    count, publishers = 2000, 4

    def publish(number: int) -> None:
        for each in range(count):
            buffer.put_waiting(message_frame(f"from.{number}", b"%d" % each), 30)

    threads = [threading.Thread(target=publish, args=(number,)) for number in range(publishers)]
    for thread in threads:
        thread.start()
    seen: dict[bytes, list[int]] = {}
    while sum(map(len, seen.values())) < count * publishers:
        assert woken.acquire(timeout=30)
        for frame in taken(buffer):
            parts = frames.parse(frame)
            seen.setdefault(parts.subject, []).append(int(parts.body))
    for thread in threads:
        thread.join(30)
    assert list(seen.values()) == [list(range(count))] * publishers
