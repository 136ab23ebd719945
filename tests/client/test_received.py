import copy
import pickle
from datetime import UTC, datetime

import pytest

from weft.client.received import Received
from weft.errors import NoSuchField, WrongType
from weft.wire import frames
from weft.wire.frames import Flag, Kind
from weft.wire.message.message import Field, Message

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
MESSAGE = Message(
    Field.int32("i", -1),
    Field.uint32("u", 1),
    Field.uint64("U", 2),
    s="text",
    n=5,
    d=1.5,
    b=True,
    blob=b"\x00",
    m=Message(x=1),
    list=[1, 2],
    t=NOON,
)


def received(message: Message = MESSAGE, reply: bytes = b"there") -> Received:
    return Received(frames.encode(Kind.MESSAGE, b"a.b", message.encode(), reply))


def test_it_knows_where_it_came_from() -> None:
    frame = bytearray(frames.encode(Kind.MESSAGE, b"a.b", MESSAGE.encode(), b"there"))
    frame[8:32] = b"".join(
        [(7).to_bytes(4, "little"), (8).to_bytes(4, "little"), *[bytes([9] + [0] * 7)] * 2]
    )
    message = Received(bytes(frame))
    assert (message.subject, message.reply) == ("a.b", "there")
    assert (message.origin, message.publisher, message.sequence, message.time) == (7, 8, 9, 9)


def test_every_field_is_read_as_the_message_reads_it() -> None:
    message = received()
    assert message["s"] == message.get_string("s") == "text"
    assert message.get_int32("i") == -1
    assert message.get_uint32("u") == 1
    assert message.get_int64("n") == 5
    assert message.get_uint64("U") == 2
    assert message.get_double("d") == 1.5
    assert message.get_bool("b") is True
    assert message.get_blob("blob") == b"\x00"
    assert message.get_message("m") == Message(x=1)
    assert message.get_list("list") == [1, 2]
    assert message.get_timestamp("t") == NOON
    assert message.get_timestamp_ns("t") == int(NOON.timestamp()) * 10**9


def test_it_is_a_collection_of_its_fields() -> None:
    message = received()
    assert len(message) == len(MESSAGE)
    assert "s" in message
    assert "absent" not in message
    assert message.get("absent", 3) == 3
    assert [field.name for field in message] == [field.name for field in MESSAGE]
    assert message.fields("n") == [Field("n", 5)]
    assert message.to_dict() == MESSAGE.to_dict()
    assert message.to_json() == MESSAGE.to_json()
    assert repr(message).startswith("Message('a.b', ")


def test_the_message_in_it_is_a_message() -> None:
    assert received().message == MESSAGE


def test_a_look_up_fails_as_the_message_does() -> None:
    with pytest.raises(NoSuchField):
        received()["absent"]
    with pytest.raises(WrongType):
        received().get_bool("s")


def test_one_without_fields_is_no_less_true() -> None:
    assert received(Message())


def test_bytes_come_back_as_bytes() -> None:
    assert Received(frames.encode(Kind.MESSAGE, b"a", b"\x01\x02", b"", Flag.BARE)).payload == (
        b"\x01\x02"
    )


def test_text_comes_back_as_text() -> None:
    assert received(Message(Field.string("", "hello"))).text == "hello"


@pytest.mark.parametrize("message", [Message(), Message(a="x"), Message(Field.blob("", b"x"))])
def test_what_is_not_text_is_not_read_as_text(message: Message) -> None:
    with pytest.raises(WrongType):
        _ = received(message).text


def test_it_can_be_pickled_and_copied() -> None:
    message = received()
    again = pickle.loads(pickle.dumps(message))  # noqa: S301  # our own
    assert (again.subject, again.reply, again.message) == ("a.b", "there", message.message)
    assert copy.copy(message) is message
    assert copy.deepcopy([message])[0] is message


def test_what_is_no_error_has_none() -> None:
    assert received().error is None
    assert not received().is_waiting
