"""Fuzzes codec.decode_fields and what people do with a received message.

A body is refused, or it encodes to the very bytes it was read from and can be shown, turned into a
dict and into JSON, and read back from that JSON.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from fuzz.targets import Broken, Target, said
from weft.errors import BadMessage, WeftError
from weft.wire.frames import Kind, encode
from weft.wire.message.codec import decode_fields, encode_fields
from weft.wire.message.message import Field, Message


def outcome(data: bytes) -> str:
    """Read an input as a body and say all that can be seen of it, or how it is refused."""
    framed = Message.from_frame(encode(Kind.MESSAGE, b"a.b", data, b"reply"))
    try:
        fields = decode_fields(data)
    except BadMessage as error:
        _expect_refusal(Message.from_body(data), said(error))
        # Offsets count from the start of the frame there, so only the class is the same.
        _expect_refusal(framed, type(error).__name__)
        return said(error)
    if encode_fields(fields) != data:
        raise Broken("a body encodes to other bytes than it was read from")
    message = Message.from_body(data)
    if framed.encode() != data or repr(list(framed)) != repr(list(message)):
        raise Broken("a message in a frame has other fields than its body alone")
    return _shown(message)


def _expect_refusal(message: Message, refusal: str) -> None:
    if "cannot be read" not in repr(message):
        raise Broken(f"refused with {refusal!r} and then shown as {message!r}")
    try:
        count = len(message)
    except BadMessage as error:
        if not said(error).startswith(refusal):
            raise Broken(f"refused once with {refusal!r} and then with {said(error)!r}") from error
    else:
        raise Broken(f"refused with {refusal!r} and then read as {count} fields")


def _shown(message: Message) -> str:
    return "\n".join(_seen(message, view) for view in (repr, Message.to_dict, _json, _values))


def _seen(message: Message, view: Callable[[Message], object]) -> str:
    try:
        return repr(view(message))
    except WeftError as error:
        return said(error)


def _json(message: Message) -> str:
    text = message.to_json()
    try:
        Message.from_json(text)
    except WeftError as error:
        raise Broken(f"to_json wrote what from_json refuses with {said(error)!r}") from error
    return text


def _values(message: Message) -> list[object]:
    return [(field.name, field.type, field.value, message[field.name]) for field in message]


def _seeds() -> Iterator[bytes]:
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    every_type = Message(
        Field.string("string", "Grüße 👋"),
        Field.int32("int32", -(1 << 31)),
        Field.uint32("uint32", (1 << 32) - 1),
        Field.int64("int64", -(1 << 63)),
        Field.uint64("uint64", (1 << 64) - 1),
        Field.double("double", float("nan")),
        Field.bool("bool", True),
        Field.blob("blob", b"\0\xff"),
        Field.null("null"),
        Field.timestamp("timestamp", moment),
        Field.list("list", [1, "two", 3.0, None, [b"five"], {"six": moment}]),
        Field.message("message", {"$blob": "not one", "": Message(deep=Message())}),
    )
    yield Message().encode()
    yield every_type.encode()
    for field in every_type:
        yield Message(field).encode()
    yield Message(Field.int32("same", 1), Field.string("same", "2")).encode()
    deepest = Message()
    for _ in range(15):
        deepest = Message(m=deepest)
    yield deepest.encode()
    # At the limit on depth, one past it by hand, and past the limits on fields and on values.
    level = b"\1\0\0\0" + b"\1\0\0\0m" + b"\x07"
    yield level * 16 + bytes(4)
    yield (4097).to_bytes(4, "little") + (bytes(4) + b"\x11") * 4097
    yield b"\1\0\0\0" + bytes(4) + b"\x10" + (65_537).to_bytes(4, "little") + b"\x11" * 65_537
    yield every_type.encode() + b"\0"


_WORDS = (
    *(bytes([kind]) for kind in (*range(1, 10), 16, 17, 18)),
    b"\1\0\0\0",
    b"\0\0\0\0",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\x7f",
    b"\x00\x00\x00\x80",
    b"\1\0\0\0\1\0\0\0m\x07",
    b"\1\0\0\0\1\0\0\0m\x10",
    b"\x05\0\0\0$blob",
    b"\x0a\0\0\0$timestamp",
    b"\x07\0\0\0$double",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x91\x8b",
)

TARGET = Target(outcome, _seeds, _WORDS)
