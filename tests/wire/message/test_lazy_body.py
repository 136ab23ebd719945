import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadFrame
from weft.wire import frames
from weft.wire.frames import Flag, Kind, Run, Stamp
from weft.wire.message.lazy_body import LazyBody
from weft.wire.message.message import Field, Message

BODY = Message(value=21.5).encode()
PARTS = ["subject", "reply", "origin", "publisher", "sequence", "time"]
STAMPS = [
    (1, 2, 3, 4),
    ((1 << 32) - 1, (1 << 32) - 1, (1 << 64) - 1, (1 << 63) - 1),
    (0, 0, 0, -(1 << 63)),
    (0x01020304, 0x05060708, 0x090A0B0C0D0E0F10, 0x1112131415161718),
]


def received(
    stamp: Stamp, subject: bytes = b"a.b", reply: bytes = b"_INBOX.7", flags: int = Flag.NONE
) -> Message:
    """A message as a subscriber gets it: encoded by a client, stamped by a gateway."""
    data = bytearray(frames.encode(Kind.MESSAGE, subject, BODY, reply, flags))
    run = Run()
    run.read(data, 0, len(data))
    run.stamp(data, stamp)
    return Message.from_frame(bytes(data))


def test_a_message_is_an_envelope() -> None:
    assert isinstance(Message(), LazyBody)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    "message", [Message(a=1), Message.from_body(BODY), Message.from_payload(b"")]
)
def test_a_message_made_here_has_an_empty_envelope(message: Message, part: str) -> None:
    assert getattr(message, part) == ("" if part in {"subject", "reply"} else 0)


@pytest.mark.parametrize("subject", ["", "a", "sensors.žluť.temp", "s" * 255])
@pytest.mark.parametrize("reply", ["", "_INBOX.7", "ř" * 127])
def test_a_received_message_has_the_names_of_its_frame(subject: str, reply: str) -> None:
    message = received(Stamp(1), subject.encode(), reply.encode())
    assert (message.subject, message.reply) == (subject, reply)


@pytest.mark.parametrize("stamp", STAMPS)
def test_a_received_message_has_the_stamp_of_its_gateway(stamp: tuple[int, ...]) -> None:
    message = received(Stamp(*stamp))
    assert (message.origin, message.publisher, message.sequence, message.time) == stamp


def test_a_frame_that_no_gateway_stamped_has_no_identity() -> None:
    message = Message.from_frame(frames.encode(Kind.MESSAGE, b"a.b", BODY))
    assert (message.origin, message.publisher, message.sequence, message.time) == (0, 0, 0, 0)


@pytest.mark.parametrize("flags", [Flag.NONE, Flag.REQUEST, Flag.BARE])
def test_flags_do_not_change_the_envelope(flags: Flag) -> None:
    message = received(Stamp(1, 2, 3, 4), flags=flags)
    assert [getattr(message, part) for part in PARTS] == ["a.b", "_INBOX.7", 1, 2, 3, 4]


@pytest.mark.parametrize("part", PARTS)
def test_the_envelope_is_not_for_changing(part: str) -> None:
    with pytest.raises(AttributeError):
        setattr(Message(), part, 1)


def test_reading_the_envelope_does_not_read_the_body() -> None:
    frame = frames.encode(Kind.MESSAGE, b"a.b", b"not a message", b"r")
    message = Message.from_frame(frame)
    assert (message.subject, message.reply, message.time) == ("a.b", "r", 0)


@pytest.mark.req("MM-9")
@pytest.mark.parametrize(("subject", "reply"), [(b"\xff", b"r"), (b"a", b"\xc3\x28")])
def test_a_name_that_is_not_utf_8_is_refused(subject: bytes, reply: bytes) -> None:
    message = Message.from_frame(frames.encode(Kind.MESSAGE, subject, BODY, reply))
    with pytest.raises(BadFrame, match="is not UTF-8"):
        assert message.subject + message.reply


def test_half_a_frame_is_no_message() -> None:
    with pytest.raises(BadFrame, match="32 bytes are not one whole frame"):
        Message.from_frame(bytes(32))


names = st.text(max_size=3)
any_field = st.recursive(
    st.one_of(
        st.builds(Field.string, names, st.text(max_size=6)),
        st.builds(Field.int32, names, st.integers(-(1 << 31), (1 << 31) - 1)),
        st.builds(Field.uint64, names, st.integers(0, (1 << 64) - 1)),
        st.builds(Field.double, names, st.floats()),
        st.builds(Field.blob, names, st.binary(max_size=6)),
        st.builds(Field.bool, names, st.booleans()),
        st.builds(Field.null, names),
        st.builds(Field.timestamp, names, st.integers(-(1 << 63), (1 << 63) - 1)),
    ),
    lambda inner: st.builds(
        lambda name, fields, is_list: Field(
            name,
            [field for field in fields if not field.name] if is_list else Message(*fields),
        ),
        names,
        st.lists(inner, max_size=4),
        st.booleans(),
    ),
    max_leaves=12,
)


@given(st.lists(any_field, max_size=5))
def test_received_fields_make_the_same_body_again(fields: list[Field]) -> None:
    body = Message(*fields).encode()
    again = Message(*Message.from_frame(frames.encode(Kind.MESSAGE, b"a", body)).fields())
    assert (again.fields(), again.encode()) == (fields, body)


def test_a_message_is_not_put_into_nothing() -> None:
    with pytest.raises(AttributeError):
        Message(a=1).put(None)  # type: ignore[arg-type]  # what an untyped caller may do
