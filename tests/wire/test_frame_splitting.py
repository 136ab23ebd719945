import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadFrame, Reserved
from weft.wire.frame_splitting import each_frame, each_message, error_in, greeting
from weft.wire.frames import Kind, encode, parse
from weft.wire.message.message import Message

FRAMES = st.lists(st.binary(max_size=50), min_size=1, max_size=8).map(
    lambda bodies: [encode(Kind.MESSAGE, b"a", body) for body in bodies]
)


@given(FRAMES)
def test_frames_come_apart_as_they_were_put_together(frames: list[bytes]) -> None:
    assert each_frame(b"".join(frames)) == frames


def test_one_frame_is_itself_and_no_copy() -> None:
    frame = encode(Kind.MESSAGE, b"a", b"body")
    assert each_frame(frame)[0] is frame


def test_a_greeting_shows_what_there_is_to_show() -> None:
    frame = parse(greeting("weather", "http", name="me.1", key="secret", ticket=""))
    assert (frame.kind, frame.subject, frame.reply) == (Kind.CONNECT, b"weather", b"me.1")
    told = Message.from_body(frame.body).to_dict()
    assert told == {"version": 1, "client": "http", "key": "secret"}


def test_a_name_that_is_too_long_for_a_frame_is_refused() -> None:
    with pytest.raises(BadFrame):
        greeting("weather", "http", name="x" * 256)


def test_an_error_is_what_its_frame_says() -> None:
    body = Message(number=Reserved.number, name="Reserved", text="not you", kind=5)
    error = error_in(parse(encode(Kind.ERROR, b"_WEFT.x", body.encode())))
    assert isinstance(error, Reserved)
    assert str(error) == "not you"


WHOLE = encode(Kind.MESSAGE, b"a", b"body")


@pytest.mark.parametrize("before", [b"", WHOLE], ids=["alone", "after another"])
@pytest.mark.parametrize(
    "odd",
    [
        bytes(32),
        b"\x1f\0\0\0" + bytes(40),
        b"\xff\xff\xff\xff" + bytes(40),
        WHOLE[:-1],
        WHOLE[:20],
        b"\x20\0",
    ],
    ids=["no size", "under a header", "huge", "cut short", "half a header", "half a size"],
)
def test_a_size_that_is_not_in_the_bytes_is_refused(before: bytes, odd: bytes) -> None:
    with pytest.raises(BadFrame, match="a frame of"):
        each_frame(before + odd)


def test_a_page_holds_messages_and_nothing_else() -> None:
    assert each_message(WHOLE * 3) == [WHOLE] * 3
    assert each_message(b"") == []
    goodbye = encode(Kind.GOODBYE, body=b"\0\0\0\0")
    with pytest.raises(BadFrame, match="kind 11 is not a message"):
        each_message(WHOLE + goodbye)
    for frame in (encode(Kind.MESSAGE, b""), encode(Kind.MESSAGE, b"a", reply=b"\xff")):
        with pytest.raises(BadFrame, match="subject or reply is not legal"):
            each_message(frame)
    with pytest.raises(BadFrame, match="not one whole frame"):
        each_message(WHOLE[:6] + b"\xff" + WHOLE[7:])
