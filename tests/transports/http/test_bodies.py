import pytest

from weft.errors import BadField, BadMessage
from weft.transports.http.bodies import BYTES, JSON, TEXT, body_of, message_of
from weft.wire.frames import Flag, Kind, encode
from weft.wire.message.message import Field, Message


def message(body: bytes, content_type: str) -> Message:
    """What a request with this body publishes."""
    made, flags = message_of(body, content_type)
    return Message.from_frame(encode(Kind.MESSAGE, b"a", made, flags=flags))


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=utf-8", "a/b+json"]
)
def test_an_object_is_the_fields_of_a_message(kind: str) -> None:
    assert message(b'{"x": 1, "y": [true]}', kind).to_dict() == {"x": 1, "y": [True]}


def test_text_is_one_unnamed_string() -> None:
    assert message(b'{"x": 1}', "text/plain").to_dict() == {"": '{"x": 1}'}


def test_other_types_are_bytes() -> None:
    assert message_of(b"\xff\0", "image/png") == (b"\xff\0", Flag.BARE)


@pytest.mark.parametrize("kind", ["", "application/x-www-form-urlencoded"])
@pytest.mark.parametrize(
    ("body", "said"),
    [(b'{"x": 1}', {"x": 1}), (b"hello", {"": "hello"}), (b"\xff", {"": b"\xff"}), (b"7", {"": 7})],
)
def test_where_no_type_tells_it_is_the_first_that_it_can_be(
    kind: str, body: bytes, said: dict[str, object]
) -> None:
    assert message(body, kind).to_dict() == said


@pytest.mark.parametrize(("body", "kind"), [(b"{", "application/json"), (b"\xff", "text/html")])
def test_what_is_not_what_its_type_says_is_refused(body: bytes, kind: str) -> None:
    with pytest.raises(BadField):
        message_of(body, kind)


@pytest.mark.parametrize(
    ("sent", "body", "kind"),
    [
        (Message(x=1), b'{"x":1}', JSON),
        (Message(Field("", "h\u00e9")), "h\u00e9".encode(), TEXT),
        (Message(Field("", 7)), b"7", JSON),
    ],
)
def test_a_message_is_answered_as_it_would_be_sent(sent: Message, body: bytes, kind: str) -> None:
    assert body_of(encode(Kind.MESSAGE, b"a", sent.encode())) == (body, kind)


def test_bare_bytes_are_answered_as_they_are() -> None:
    assert body_of(encode(Kind.MESSAGE, b"a", b"\0\xff", flags=Flag.BARE)) == (b"\0\xff", BYTES)


def test_what_is_no_message_is_named() -> None:
    with pytest.raises(BadMessage):
        body_of(encode(Kind.MESSAGE, b"a", b"\x01"))
