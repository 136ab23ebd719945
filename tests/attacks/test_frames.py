"""Frames that lie about themselves: each ends the connection it came by, and no other."""

import random
import struct

import pytest
from tests.attacks.gateway_process import rss_bytes
from tests.attacks.siege import Siege
from tests.attacks.stranger import CONNECT, message, subscribe

from weft.wire.frames import Flag, Kind, encode
from weft.wire.message.types import FieldType

LIMIT = 1 << 20
NAMES = 2 * 255
# A frame that counts: it must be heard although what follows it is refused.
LAST_WORDS = message(b"last.words", b"so long")


def frame_of(size: int, names: tuple[int, int] = (0, 0), kind: int = Kind.MESSAGE) -> bytes:
    """A header that claims whatever it is told to."""
    return struct.pack("<IBBBB", size, kind, 0, *names) + bytes(24)


def garbage(seed: int) -> bytes:
    """Bytes that look random, and whose first four are no size that a frame can have."""
    return b"\xff\xff\xff\xff" + random.Random(seed).randbytes(65_536)


def options_of(count: int, body: bytes = b"") -> bytes:
    """A SUBSCRIBE whose options claim to be so many fields."""
    return encode(Kind.SUBSCRIBE, b"a", struct.pack("<i", count) + body)


# A field without a name: null, and a message of one more field.
NULL = struct.pack("<iB", 0, FieldType.NULL)
NESTED = struct.pack("<iBi", 0, FieldType.MESSAGE, 1)

LIES = {
    **{f"size of {size}": (frame_of(size), "BadFrame") for size in (*range(6), 16, 31)},
    "size just over the limit": (frame_of(32 + NAMES + LIMIT + 1), "FrameTooBig"),
    "size of 2 GiB": (frame_of(1 << 31), "FrameTooBig"),
    "size of -1": (frame_of((1 << 32) - 1), "FrameTooBig"),
    "size and nothing else": (struct.pack("<I", (1 << 32) - 1), "FrameTooBig"),
    "subject longer than the frame": (frame_of(32, (1, 0)), "BadFrame"),
    "reply longer than the frame": (frame_of(32, (0, 255)), "BadFrame"),
    "names longer than the frame": (frame_of(40, (5, 4)) + bytes(8), "BadFrame"),
    "body over the limit": (message(b"a", bytes(LIMIT + 1)), "FrameTooBig"),
    "garbage": (garbage(1), "FrameTooBig"),
    "zeros": (bytes(4096), "BadFrame"),
    "a line of text": (b"hello, is anybody there?\r\n", "FrameTooBig"),
    "HTTP after the greeting": (b"GET /status HTTP/1.1\r\n\r\n", "FrameTooBig"),
    "second CONNECT": (CONNECT, "BadGreeting"),
    "CONNECT to another service": (encode(Kind.CONNECT, b"other"), "BadGreeting"),
    "SUBSCRIBE with half a body": (encode(Kind.SUBSCRIBE, b"a", b"\x01\x00"), "BadMessage"),
    "SUBSCRIBE of 2^31 fields": (options_of((1 << 31) - 1), "BadMessage"),
    "SUBSCRIBE of -1 fields": (options_of(-1), "BadMessage"),
    "SUBSCRIBE of 5,000 fields": (options_of(5000, NULL * 5000), "MessageTooBig"),
    "SUBSCRIBE of messages in messages": (options_of(1, NESTED * 17 + NULL), "MessageTooBig"),
}


@pytest.mark.req("MM-10")
@pytest.mark.parametrize(("lie", "error"), LIES.values(), ids=LIES.keys())
def test_a_frame_that_cannot_be_ends_its_connection_alone(
    siege: Siege, lie: bytes, error: str
) -> None:
    witness = siege.stranger(CONNECT + subscribe(b"last.words"))
    witness.hear_until_pong()
    liar = siege.stranger(CONNECT + LAST_WORDS + lie)
    siege.bystander.talk()
    assert liar.hear_end() == error
    assert witness.hear(Kind.MESSAGE).body == b"so long"
    siege.await_counts(**{f"refused_{error}": 1, f"ended_{error}": 1})


@pytest.mark.parametrize(
    "kind", [Kind.WELCOME, Kind.OK, Kind.ERROR, Kind.GAP, 0, *range(12, 256, 27), 255]
)
def test_a_kind_that_clients_do_not_send_ends_its_connection_alone(siege: Siege, kind: int) -> None:
    assert siege.stranger(CONNECT + encode(kind)).hear_end() == "UnexpectedFrame"
    siege.await_counts(refused_UnexpectedFrame=1, ended_UnexpectedFrame=1)


@pytest.mark.req("MM-10")
def test_claims_of_huge_frames_cost_no_memory(siege: Siege) -> None:
    before = rss_bytes(siege.worker)
    liars = [siege.stranger(CONNECT + frame_of(32 + LIMIT)) for _ in range(200)]
    for liar in liars:
        liar.hear(Kind.WELCOME)
    siege.bystander.talk()
    # 200 MiB were claimed; what was sent of them is 6,400 bytes.
    assert rss_bytes(siege.worker) - before < 200 * (128 << 10) + (16 << 20)


def test_the_largest_frame_there_can_be_is_delivered(siege: Siege) -> None:
    longest = b".".join([b"x" * 127, b"y" * 127])
    stranger = siege.stranger(CONNECT + subscribe(b">"))
    whole = message(longest, bytes(LIMIT), longest)
    assert len(whole) == 32 + NAMES + LIMIT
    stranger.send(whole)
    assert len(stranger.hear(Kind.MESSAGE).body) == LIMIT
    siege.await_counts()


def test_flags_that_mean_nothing_change_nothing(siege: Siege) -> None:
    stranger = siege.stranger(CONNECT + subscribe(b"odd.flags"))
    stranger.send(encode(Kind.PING, flags=0xF0), encode(Kind.MESSAGE, b"odd.flags", flags=0x18))
    assert [
        frame.subject for frame in stranger.hear_until_pong() if frame.kind == Kind.MESSAGE
    ] == [b"odd.flags"]
    siege.await_counts()


def test_after_goodbye_nothing_counts_and_what_is_owed_comes(siege: Siege) -> None:
    witness = siege.stranger(CONNECT + subscribe(b"last.words"))
    witness.hear_until_pong()
    leaver = siege.stranger(CONNECT + subscribe(b"last.words"))
    leaver.send(LAST_WORDS, encode(Kind.GOODBYE), LAST_WORDS, garbage(2))
    heard = [frame.kind for frame in leaver.hear_all()]
    assert heard == [Kind.WELCOME, Kind.MESSAGE]
    assert [frame.body for frame in witness.hear_until_pong()] == [b"so long"]
    siege.await_counts()


def test_a_ping_with_much_to_say_is_refused_and_the_connection_goes_on(siege: Siege) -> None:
    stranger = siege.stranger()
    stranger.send(encode(Kind.PING, body=bytes(65)), encode(Kind.PING, body=bytes(LIMIT)))
    assert stranger.hear_errors() == ["UsageError", "UsageError"]
    siege.await_counts(refused_UsageError=2)


def test_an_answer_that_is_asked_of_every_kind_comes_once(siege: Siege) -> None:
    stranger = siege.stranger()
    stranger.hear_until_pong()
    stranger.send(
        message(b"a.b", flags=Flag.ANSWER),
        subscribe(b"a.b", flags=Flag.ANSWER),
        encode(Kind.UNSUBSCRIBE, b"a.b", flags=Flag.ANSWER),
        encode(Kind.PONG, flags=Flag.ANSWER),
    )
    assert [frame.kind for frame in stranger.hear_until_pong()] == [Kind.OK] * 4
    siege.await_counts()
