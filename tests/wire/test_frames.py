import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadFrame, FrameTooBig
from weft.wire import frames
from weft.wire.buffer import Writer
from weft.wire.frames import Decoder, Flag, Kind, Run, Stamp

LIMIT = 1000
FIRST = frames.encode(Kind.MESSAGE, b"a.b", b"hello", b"r", Flag.ANSWER)
SECOND = frames.encode(Kind.PING)
TWO_FRAMES = FIRST + SECOND

any_frame = st.builds(
    frames.encode,
    kind=st.sampled_from(Kind),
    subject=st.binary(max_size=255),
    body=st.binary(max_size=LIMIT),
    reply=st.binary(max_size=255),
    flags=st.integers(0, 15),
)


def header(size: int, subject_length: int = 0, reply_length: int = 0) -> bytes:
    return size.to_bytes(4, "little") + bytes([5, 0, subject_length, reply_length]) + bytes(24)


def drain(decoder: Decoder) -> list[bytes]:
    return list(iter(decoder.next_frame, None))


def decode(data: bytes, limit: int = LIMIT) -> list[bytes]:
    decoder = Decoder(limit)
    decoder.feed(data)
    return drain(decoder)


@pytest.mark.req("MM-8")
def test_the_size_is_little_endian_and_includes_itself() -> None:
    assert SECOND[:4] == (32).to_bytes(4, "little")
    assert FIRST[:4] == len(FIRST).to_bytes(4, "little")


@pytest.mark.parametrize(
    "data",
    [b"", FIRST[:31], FIRST[:-1], FIRST + b"x", SECOND[:6] + b"\xc8\xc8" + SECOND[8:]],
    ids=["nothing", "half a header", "too few", "too many", "names beyond the end"],
)
def test_what_is_not_one_whole_frame_is_not_taken_apart(data: bytes) -> None:
    with pytest.raises(BadFrame, match=f"{len(data)} bytes are not one whole frame"):
        frames.parse(data)


def test_a_frame_parses_into_what_it_was_made_of() -> None:
    assert frames.parse(FIRST) == frames.Frame(5, 1, b"a.b", b"r", b"hello")


@pytest.mark.req("MM-8")
@pytest.mark.parametrize("cut", range(len(TWO_FRAMES) + 1))
def test_frames_survive_any_split(cut: int) -> None:
    decoder = Decoder()
    decoder.feed(TWO_FRAMES[:cut])
    found = drain(decoder)
    decoder.feed(TWO_FRAMES[cut:])
    assert found + drain(decoder) == [FIRST, SECOND]


@pytest.mark.req("MM-8")
@given(st.lists(any_frame, max_size=8), st.randoms(use_true_random=False))
def test_any_frames_in_any_pieces_are_the_same_frames(
    sent: list[bytes], chance: random.Random
) -> None:
    stream = b"".join(sent)
    decoder = Decoder(LIMIT)
    found = []
    while stream:
        length = chance.randint(1, 64)
        decoder.feed(stream[:length])
        stream = stream[length:]
        found += drain(decoder)
    assert found == sent


@given(
    st.lists(st.sampled_from([FIRST, SECOND, frames.encode(Kind.MESSAGE, b"a.c")]), max_size=12),
    st.integers(1, 200),
)
def test_runs_are_the_same_frames_several_at_a_time(sent: list[bytes], length: int) -> None:
    stream = b"".join(sent)
    decoder = Decoder()
    found: list[bytes] = []
    for at in range(0, len(stream), length):
        decoder.feed(stream[at : at + length])
        while run := decoder.next_run():
            assert len({frames.parse(frame)[:3] for frame in run}) == 1
            found += run
    assert found == sent


@given(any_frame)
def test_parse_and_encode_are_inverse(frame: bytes) -> None:
    parsed = frames.parse(frame)
    assert frame == frames.encode(
        parsed.kind, parsed.subject, parsed.body, parsed.reply, parsed.flags
    )


@pytest.mark.req("MM-10")
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 31])
def test_a_size_under_the_header_is_refused(size: int) -> None:
    with pytest.raises(BadFrame, match=f"size of {size} bytes is under"):
        decode(header(size))


@pytest.mark.req("MM-10")
@pytest.mark.parametrize(
    "size", [LIMIT + 32 + 510 + 1, 1 << 20, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
)
def test_a_size_over_the_limit_is_refused_on_its_first_four_bytes(size: int) -> None:
    decoder = Decoder(LIMIT)
    decoder.feed(size.to_bytes(4, "little"))
    tracemalloc.start()
    try:
        with pytest.raises(FrameTooBig, match=f"{size} bytes is over the limit of {LIMIT + 542}"):
            decoder.next_frame()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16_384


@pytest.mark.req("MM-10")
def test_a_body_over_the_limit_is_refused_though_the_frame_could_be_legal() -> None:
    frame = frames.encode(Kind.MESSAGE, b"a", b"x" * (LIMIT + 1))
    with pytest.raises(
        FrameTooBig, match=f"body of {LIMIT + 1} bytes is over the limit of {LIMIT}"
    ):
        decode(frame)


def test_a_body_at_the_limit_is_taken() -> None:
    frame = frames.encode(Kind.MESSAGE, b"s" * 255, b"x" * LIMIT, b"r" * 255)
    assert decode(frame) == [frame]


@pytest.mark.req("MM-10")
@pytest.mark.parametrize(("subject", "reply"), [(1, 0), (0, 1), (255, 255), (4, 4)])
def test_names_longer_than_their_frame_are_refused(subject: int, reply: int) -> None:
    with pytest.raises(BadFrame, match="subject and reply of"):
        decode(header(32 + subject + reply - 1, subject, reply) + bytes(subject + reply - 1))


@pytest.mark.req("MM-10")
@pytest.mark.parametrize("cut", range(len(TWO_FRAMES) + 4))
def test_whole_frames_before_a_bad_one_come_out_first_however_split(cut: int) -> None:
    stream = TWO_FRAMES + (3).to_bytes(4, "little")
    decoder = Decoder()
    decoder.feed(stream[:cut])
    found = []
    for _ in range(2):
        found += drain_until_bad(decoder)
        decoder.feed(stream[cut:])
        cut = len(stream)
    assert found == [FIRST, SECOND]
    with pytest.raises(BadFrame):
        decoder.next_frame()


def drain_until_bad(decoder: Decoder) -> list[bytes]:
    found = []
    try:
        for frame in iter(decoder.next_frame, None):
            found.append(frame)  # noqa: PERF402  # the frames before the error count
    except BadFrame:
        pass
    return found


@given(st.binary(max_size=200))
def test_any_bytes_give_frames_or_a_named_error(data: bytes) -> None:
    try:
        found = decode(data)
    except BadFrame:
        return
    assert data.startswith(b"".join(found))


@pytest.mark.parametrize("limit", [-1, 1 << 31])
def test_a_limit_that_no_size_could_say_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="body limit"):
        Decoder(limit)


@pytest.mark.parametrize("names", [(b"s" * 256, b""), (b"", b"r" * 256)])
def test_names_over_255_bytes_cannot_be_encoded(names: tuple[bytes, bytes]) -> None:
    with pytest.raises(BadFrame, match="the limit of each is 255"):
        frames.encode(Kind.MESSAGE, names[0], b"", names[1])


@pytest.mark.parametrize(("kind", "flags"), [(256, 0), (-1, 0), (5, 256), (5, -1)])
def test_kind_and_flags_are_a_byte_each(kind: int, flags: int) -> None:
    with pytest.raises(BadFrame, match="each is one byte"):
        frames.encode(kind, b"a", flags=flags)


@pytest.mark.parametrize("start", [-1, 1, 33, 1 << 40])
def test_a_frame_that_never_began_is_not_ended(start: int) -> None:
    writer = Writer()
    frames.begin_frame(writer, Kind.PING, 0, b"", b"")
    with pytest.raises(BadFrame, match=f"{32 - start} bytes from {start} on are not"):
        frames.end_frame(writer, start)


def test_a_run_does_not_begin_before_its_bytes() -> None:
    with pytest.raises(ValueError, match="cannot begin at -1"):
        Run().read(FIRST, -1, 10)


def test_frames_can_be_written_one_after_the_other() -> None:
    writer = Writer()
    for body in (b"one", b"two"):
        start = frames.begin_frame(writer, Kind.MESSAGE, Flag.NONE, b"a", b"")
        writer.put(body)
        frames.end_frame(writer, start)
    assert [frames.parse(frame).body for frame in decode(writer.take())] == [b"one", b"two"]


def test_a_run_is_frames_of_one_subject_kind_and_flags() -> None:
    same = frames.encode(Kind.MESSAGE, b"a", b"1", b"r") + frames.encode(Kind.MESSAGE, b"a", b"22")
    others = [
        frames.encode(Kind.MESSAGE, b"b", b"1"),
        frames.encode(Kind.MESSAGE, b"bc", b"1"),
        frames.encode(Kind.MESSAGE, b"bc", b"1", flags=Flag.NOT_BACK),
        frames.encode(Kind.PING, b"bc"),
    ]
    data = same + b"".join(others)
    run = Run()
    found = []
    at = 0
    while run.read(data, at, len(data)):
        found.append((run.count, run.subject(data), run.kind, run.flags))
        at = run.end
    assert found == [
        (2, b"a", 5, 0),
        (1, b"b", 5, 0),
        (1, b"bc", 5, 0),
        (1, b"bc", 5, 4),
        (1, b"bc", 8, 0),
    ]


@pytest.mark.parametrize(("length", "need"), [(0, 0), (3, 0), (4, 41), (40, 41)])
def test_a_run_says_how_large_the_unfinished_frame_is(length: int, need: int) -> None:
    run = Run()
    assert not run.read(FIRST, 0, length)
    assert run.need == need
    assert run.end == 0


def test_stamping_writes_identity_and_time_in_place() -> None:
    data = bytearray(FIRST + FIRST)
    run = Run()
    stamp = Stamp(origin=0xFFFFFFFF, publisher=7, sequence=(1 << 64) - 2, time_ns=-5)
    run.read(data, 0, len(data))
    run.stamp(data, stamp)
    first, second = (frames.parse(frame) for frame in decode(bytes(data)))
    assert first == (*frames.parse(FIRST)[:5], 0xFFFFFFFF, 7, (1 << 64) - 2, -5)
    assert second.sequence == (1 << 64) - 1


def test_nothing_is_no_stamp() -> None:
    data = bytearray(FIRST)
    run = Run()
    run.read(data, 0, len(data))
    with pytest.raises(AttributeError):
        run.stamp(data, None)  # type: ignore[arg-type]  # what an untyped caller may do
    assert data == FIRST


def test_a_slow_large_frame_costs_no_more_than_its_bytes() -> None:
    frame = frames.encode(Kind.MESSAGE, b"a", b"x" * 100_000)
    decoder = Decoder()
    found = []
    for at in range(len(frame)):
        decoder.feed(frame[at : at + 1])
        found += drain(decoder)
    assert found == [frame]


def test_kinds_and_flags_have_the_numbers_of_the_protocol() -> None:
    assert [kind.name for kind in sorted(Kind)] == [
        "CONNECT",
        "WELCOME",
        "SUBSCRIBE",
        "UNSUBSCRIBE",
        "MESSAGE",
        "OK",
        "ERROR",
        "PING",
        "PONG",
        "GAP",
        "GOODBYE",
        "LINK",
        "FORWARD",
        "FABRIC",
        "LANE",
        "TAIL",
    ]
    assert sorted(Kind) == list(range(1, 17))
    assert [Flag.NONE, *Flag] == [0, 1, 2, 4, 8, 16, 32, 64]
    names = ["ANSWER", "REQUEST", "NOT_BACK", "BARE", "MASKED", "FAILED", "FROM_GATEWAY"]
    assert [flag.name for flag in Flag] == names


@pytest.mark.parametrize(
    "data",
    [SECOND[:6] + b"\x01\x00" + SECOND[8:], SECOND[:6] + b"\x00\x01" + SECOND[8:]],
    ids=["subject", "reply"],
)
def test_a_name_one_byte_beyond_the_end_is_not_read(data: bytes) -> None:
    with pytest.raises(BadFrame, match="32 bytes are not one whole frame"):
        frames.parse(data)


def test_the_error_names_the_body_if_only_the_body_is_too_large() -> None:
    frame = frames.encode(Kind.MESSAGE, b"", b"x" * (LIMIT + 510))
    with pytest.raises(FrameTooBig, match=f"body of {LIMIT + 510} bytes is over"):
        decode(frame)


@pytest.mark.parametrize("limit", [0, (1 << 31) - 1])
def test_a_limit_may_be_anything_that_a_size_can_say(limit: int) -> None:
    assert decode(TWO_FRAMES[-32:], limit) == [SECOND]


def test_a_body_of_one_mebibyte_is_taken_unless_configured_otherwise() -> None:
    frame = frames.encode(Kind.MESSAGE, b"a", bytes(1 << 20))
    decoder = Decoder()
    decoder.feed(frame)
    assert decoder.next_frame() == frame
    decoder.feed(frames.encode(Kind.MESSAGE, b"a", bytes((1 << 20) + 1)))
    with pytest.raises(FrameTooBig):
        decoder.next_frame()


@pytest.mark.parametrize(("length", "need"), [(0, 0), (3, 0), (4, 41), (40, 41)])
def test_bytes_beyond_the_end_are_not_looked_at(length: int, need: int) -> None:
    run = Run()
    assert not run.read(SECOND + FIRST, 32, 32 + length)
    assert (run.need, run.end) == (need, 32)


def test_a_stamp_is_zero_in_what_it_does_not_say() -> None:
    data = bytearray(b"\xff" * 8 + FIRST)
    run = Run()
    run.read(data, 8, len(data))
    run.stamp(data, Stamp(9))
    assert frames.parse(bytes(data[8:])) == (*frames.parse(FIRST)[:5], 9, 0, 0, 0)


def test_a_frame_in_a_used_writer_has_no_identity_of_a_former_one() -> None:
    writer = Writer()
    writer.put(b"\xff" * 100)
    writer.take()
    start = frames.begin_frame(writer, Kind.PING, Flag.NONE, b"", b"")
    frames.end_frame(writer, start)
    assert writer.take() == SECOND


def test_a_decoder_keeps_no_room_for_a_frame_larger_than_most() -> None:
    decoder = Decoder(8 << 20)
    tracemalloc.start()
    try:
        decoder.feed(frames.encode(Kind.MESSAGE, b"a", bytes(4 << 20)))
        assert len(decoder.next_frame() or b"") > 4 << 20
        decoder.feed(FIRST)
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert decoder.next_run() == [FIRST]
    assert left < 16_384


def test_a_decoder_does_not_hold_on_to_what_it_handed_out() -> None:
    frame = frames.encode(Kind.MESSAGE, b"a", b"x" * 1000)
    decoder = Decoder()
    tracemalloc.start()
    try:
        for _ in range(1000):
            decoder.feed(frame)
            decoder.next_frame()
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left < 16_384


@pytest.mark.parametrize(("replies", "has_reply"), [((b"", b""), False), ((b"", b"r"), True)])
def test_a_run_knows_if_any_of_its_frames_has_a_reply(
    replies: tuple[bytes, ...], has_reply: bool
) -> None:
    run = Run()
    for _ in range(2):
        data = b"".join(frames.encode(Kind.MESSAGE, b"a", b"", reply) for reply in replies)
        assert run.read(data, 0, len(data))
        assert (run.count, run.has_reply) == (2, has_reply)
    assert run.read(SECOND, 0, len(SECOND))
    assert not run.has_reply


def test_one_frame_of_many_is_stamped_in_place() -> None:
    data = bytearray(FIRST + FIRST)
    stamp = Stamp(7, publisher=8, sequence=9, time_ns=-10)
    frames.stamp_frame(data, len(FIRST), stamp)
    assert data[: len(FIRST)] == FIRST
    stamped = frames.parse(bytes(data[len(FIRST) :]))
    assert stamped[-4:] == (7, 8, 9, -10)
    assert stamp.sequence == 10
