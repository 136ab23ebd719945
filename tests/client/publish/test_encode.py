from typing import Any

import pytest

from weft.client.publish.encode import Body, message_frame, message_from
from weft.client.received import Received
from weft.errors import BadField, BadSubject
from weft.wire import frames
from weft.wire.frames import Flag, Frame, Kind
from weft.wire.message.message import Field, Message


def sent(body: Body, reply: str = "", flags: int = 0) -> Frame:
    return frames.parse(message_frame("a.b", body, reply, flags))


def test_a_message_is_sent_with_its_fields() -> None:
    assert sent(Message(value=1), "r", Flag.NOT_BACK) == Frame(
        Kind.MESSAGE, Flag.NOT_BACK, b"a.b", b"r", Message(value=1).encode()
    )


@pytest.mark.parametrize("body", [b"\x01\x02", bytearray(b"\x01\x02"), memoryview(b"\x01\x02")])
def test_bytes_are_sent_bare(body: Body) -> None:
    frame = sent(body, flags=Flag.ANSWER)
    assert (frame.flags, frame.body) == (Flag.ANSWER | Flag.BARE, b"\x01\x02")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("text", Message(Field.string("", "text"))),
        ({"value": 1}, Message(value=1)),
        (Received(message_frame("x", Message(value=1))), Message(value=1)),
    ],
)
def test_what_stands_for_a_message_is_sent_as_one(body: Body, message: Message) -> None:
    assert sent(body).body == message_from(body).encode() == message.encode()


def test_a_message_stands_for_itself() -> None:
    message = Message(value=1)
    assert message_from(message) is message


@pytest.mark.parametrize("body", [b"x", bytearray(b"x"), memoryview(b"x")])
def test_bytes_stand_for_an_unnamed_blob(body: Body) -> None:
    assert message_from(body) == Message.from_payload(b"x")


@pytest.mark.parametrize("body", [None, 7, [1], object()])
def test_what_is_no_body_is_refused(body: Any) -> None:
    with pytest.raises(BadField, match="cannot be published"):
        sent(body)


@pytest.mark.parametrize("subject", ["", "a..b", "a.*", ">"])
def test_only_a_subject_can_be_published_to(subject: str) -> None:
    with pytest.raises(BadSubject):
        message_frame(subject, b"")


def test_a_reply_is_a_subject() -> None:
    with pytest.raises(BadSubject):
        message_frame("a", b"", "a.>")
