"""Fuzzes frames.Decoder and frames.Run: any split gives the same frames and the same refusal.

The first byte of an input picks the body limit, the next three the sizes of the pieces in which the
rest is fed, over and over; a size of 0 is all that is left.
"""

from collections.abc import Iterable, Iterator
from itertools import cycle

from fuzz.targets import Broken, Target, said
from weft.errors import BadFrame
from weft.wire.frames import (
    BODY_LIMIT_BYTES,
    HEADER_BYTES,
    Decoder,
    Flag,
    Kind,
    Run,
    Stamp,
    encode,
    parse,
)

_LIMITS_BYTES = (BODY_LIMIT_BYTES, 1024, 16, 0)
_CHOICE_BYTES = 4


def outcome(data: bytes) -> str:
    """Decode the stream in an input and say which frames came out, and what was refused."""
    choice = data[:_CHOICE_BYTES].ljust(_CHOICE_BYTES, b"\0")
    stream = data[_CHOICE_BYTES:]
    limit_bytes = _LIMITS_BYTES[choice[0] % len(_LIMITS_BYTES)]
    frames, refusal = _decoded(_pieces(stream, choice[1:]), limit_bytes)
    if (frames, refusal) != _decoded([stream], limit_bytes):
        raise Broken("another split gives other frames or another refusal")
    if not stream.startswith(b"".join(frames)):
        raise Broken("the frames are not what the stream begins with")
    if _stamped(stream, limit_bytes) != [_with_stamp(frame, at) for at, frame in enumerate(frames)]:
        raise Broken("runs hold other frames than the decoder found")
    lines = [_shown(frame, limit_bytes) for frame in frames]
    return "\n".join([*lines, refusal])


def _decoded(pieces: Iterable[bytes], limit_bytes: int) -> tuple[list[bytes], str]:
    decoder = Decoder(limit_bytes)
    frames: list[bytes] = []
    refusal = ""
    for piece in pieces:
        decoder.feed(piece)
        now = _drain(decoder, frames)
        if refusal and now != refusal:
            raise Broken(f"{refusal!r} became {now!r} when more was fed")
        refusal = now
    return frames, refusal


def _drain(decoder: Decoder, frames: list[bytes]) -> str:
    try:
        while (frame := decoder.next_frame()) is not None:
            frames.append(frame)
    except BadFrame as error:
        return said(error)
    return ""


def _pieces(stream: bytes, sizes: bytes) -> Iterator[bytes]:
    at = 0
    for size in cycle(sizes):
        end = at + size if size else len(stream)
        yield stream[at:end]
        at = end
        if at >= len(stream):
            return


def _stamped(stream: bytes, limit_bytes: int) -> list[bytes]:
    """The frames of a stream after Run wrote identity and time into them in place."""
    buffer = bytearray(stream)
    run = Run(limit_bytes)
    stamp = Stamp(1, 2, 0, 4)
    frames = []
    at = 0
    try:
        while run.read(buffer, at, len(buffer)):
            run.stamp(buffer, stamp)
            for _ in range(run.count):
                end = at + int.from_bytes(buffer[at : at + 4], "little")
                frames.append(bytes(buffer[at:end]))
                at = end
    except BadFrame:
        pass  # the decoder says the same, and that is compared
    if at != run.start:
        raise Broken(f"frames end at {at} where the run after them starts at {run.start}")
    return frames


def _with_stamp(frame: bytes, sequence: int) -> bytes:
    identity = b"".join(n.to_bytes(size, "little") for n, size in ((1, 4), (2, 4), (sequence, 8)))
    return frame[:8] + identity + (4).to_bytes(8, "little") + frame[HEADER_BYTES:]


def _shown(frame: bytes, limit_bytes: int) -> str:
    parsed = parse(frame)
    names_bytes = len(parsed.subject) + len(parsed.reply)
    if HEADER_BYTES + names_bytes + len(parsed.body) != len(frame):
        raise Broken(f"the parts of a frame of {len(frame)} bytes are not all of it")
    if len(parsed.body) > limit_bytes:
        raise Broken(f"a body of {len(parsed.body)} bytes passed the limit of {limit_bytes}")
    return repr(parsed)


def _seeds() -> Iterator[bytes]:
    short = encode(Kind.MESSAGE, b"a.b", b"body", b"reply.to", Flag.ANSWER)
    twice = short + encode(Kind.MESSAGE, b"a.b", b"other", b"", Flag.ANSWER)
    mixed = twice + encode(Kind.PING) + encode(Kind.SUBSCRIBE, b"a.>") + encode(Kind.GOODBYE)
    for choice in (b"\0\0\0\0", b"\1\1\1\1", b"\2\7\50\0", b"\3\37\1\40"):
        for stream in (b"", short, twice, mixed, mixed + b"\37\0\0\0", short[:-1]):
            yield choice + stream
    yield b"\0\0\0\0" + short + b"\xff\xff\xff\xff"
    yield b"\1\0\0\0" + encode(Kind.MESSAGE, b"s" * 255, bytes(1024), b"r" * 255)
    yield b"\1\0\0\0" + encode(Kind.MESSAGE, b"s", bytes(1025))
    yield b"\0\0\0\0" + short[:6] + b"\xff\xff" + short[8:]


_WORDS = (
    b"\x20\0\0\0",
    b"\x1f\0\0\0",
    b"\x00\x00\x00\x00",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\x7f",
    b"\x00\x00\x00\x80",
    encode(Kind.PING),
    encode(Kind.MESSAGE, b"a.b", b"body"),
)

TARGET = Target(outcome, _seeds, _WORDS)
