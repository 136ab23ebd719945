import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.journal.desk import message

from weft.journal.parquet.columns import Columns, IntegerColumn, Texts
from weft.wire.frames import Flag, Kind, Stamp, encode, parse, stamp_frame

NAMES = st.sampled_from([b"a", b"a.b", b"sensors.london.temp", b"x" * 127])


def texts(column: Texts) -> list[bytes]:
    ends = memoryview(column.offsets.take()).cast("i")
    data = column.data.take()
    return [data[ends[row] : ends[row + 1]] for row in range(len(ends) - 1)]


def numbers(column: IntegerColumn) -> list[int]:
    return memoryview(column.data.take()).cast("q").tolist()


def framed(subject: bytes, reply: bytes, body: bytes, numbers: tuple[int, int, int, int]) -> bytes:
    frame = bytearray(encode(Kind.MESSAGE, subject, body, reply, Flag.BARE))
    stamp_frame(frame, 0, Stamp(*numbers))
    return bytes(frame)


@given(
    st.lists(
        st.builds(
            framed,
            NAMES,
            st.sampled_from([b"", b"_INBOX.1.2"]),
            st.binary(max_size=300),
            st.tuples(
                st.integers(0, 2**32 - 1),
                st.integers(0, 2**32 - 1),
                st.integers(1, 2**63 - 1),
                st.integers(0, 2**62),
            ),
        ),
        max_size=20,
    )
)
def test_every_part_of_a_frame_is_in_its_column(frames: list[bytes]) -> None:
    columns = Columns()
    columns.add(b"".join(frames), 100, len(frames))
    parts = [parse(frame) for frame in frames]
    assert columns.rows == len(frames)
    assert texts(columns.subject) == [each.subject for each in parts]
    assert texts(columns.reply) == [each.reply for each in parts]
    assert texts(columns.payload) == [each.body for each in parts]
    assert numbers(columns.flags) == [each.flags for each in parts]
    assert numbers(columns.origin) == [each.origin for each in parts]
    assert numbers(columns.publisher) == [each.publisher for each in parts]
    assert numbers(columns.sequence) == [each.sequence for each in parts]
    assert numbers(columns.time_ns) == [each.time_ns for each in parts]
    assert numbers(columns.position) == [100 + number for number in range(len(frames))]


def test_only_what_matches_is_taken() -> None:
    subjects = [b"a.b", b"a.b", b"c", b"a.c", b"c", b"a.b"]
    frames = [message(number, subject) for number, subject in enumerate(subjects)]
    columns = Columns((b"a.*", b"d"))
    columns.add(b"".join(frames[:3]), 0, 3)
    columns.add(b"".join(frames[3:]), 3, 3)
    assert numbers(columns.position) == [0, 1, 3, 5]


@pytest.mark.parametrize(
    ("data", "count", "why"),
    [
        (message(1), 2, "2 frames do not fit"),
        (message(1)[:40], 1, "is not in 40"),
        (message(1) + b"x", 1, "1 bytes follow"),
        (bytes(32), 1, "a frame of 0 bytes"),
        (b"", 1, "do not fit"),
    ],
)
def test_what_are_no_frames_is_refused(data: bytes, count: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Columns().add(data, 0, count)
