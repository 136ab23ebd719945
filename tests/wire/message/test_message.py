import copy
import math
import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from weft.errors import (
    BadField,
    BadMessage,
    MessageTooBig,
    NoSuchField,
    UsageError,
    WrongType,
)
from weft.wire import frames
from weft.wire.buffer import Writer
from weft.wire.frames import Flag, Kind, Run, Stamp
from weft.wire.message.message import Field, Message
from weft.wire.message.types import DEPTH_MAX, FieldType

NOON = datetime(2026, 1, 31, 12, 0, 0, 250, tzinfo=UTC)
EVERY_BYTE = bytes(range(256))
ENDLESS: list[Any] = [1]
ENDLESS.append(ENDLESS)

# One value of every type; a getter and a maker are named after each.
VALUES: dict[str, Any] = {
    "string": "žluť",
    "int32": -2,
    "uint32": (1 << 32) - 2,
    "int64": -(1 << 62),
    "uint64": (1 << 64) - 2,
    "double": 21.5,
    "bool": True,
    "blob": EVERY_BYTE,
    "message": Message(a=1),
    "list": [1, "x", [None]],
    "timestamp": NOON,
}
RANGES = [
    *((f"int{bits}", -(1 << bits - 1), (1 << bits - 1) - 1) for bits in (32, 64)),
    *((f"uint{bits}", 0, (1 << bits) - 1) for bits in (32, 64)),
]
EVERYTHING = Message(
    *(getattr(Field, kind)(kind, value) for kind, value in VALUES.items()), Field.null("null")
)
# What a body must keep and Python values alone do not tell.
TYPED = Message(
    Field.list("items", [Field.uint32("", 1), Field.int32("", 2), [Field.uint64("", 3)], 4]),
    Field.message("inner", Message(Field.uint32("n", 7), n="again")),
    n=1,
)


def received(body: bytes, flags: int = Flag.NONE) -> Message:
    data = bytearray(frames.encode(Kind.MESSAGE, b"a.b", body, b"reply.to", flags))
    run = Run()
    run.read(data, 0, len(data))
    run.stamp(data, Stamp(1, 2, 3, 4))
    return Message.from_frame(bytes(data))


# Every way in which a message comes to be; made anew, as it remembers what was read.
SOURCES: dict[str, Callable[[], Message]] = {
    "made": lambda: Message(*EVERYTHING),
    "body": lambda: Message.from_body(TYPED.encode()),
    "frame": lambda: received(TYPED.encode()),
    "bare": lambda: received(b"x", Flag.BARE),
}


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301  # our own bytes


def nested(depth: int) -> dict[str, Any]:
    values: dict[str, Any] = {"bottom": 1}
    for _ in range(depth - 1):
        values = {"m": values}
    return values


@pytest.mark.req("MM-5")
@pytest.mark.parametrize(
    ("given", "kind", "value"),
    [
        (1, FieldType.INT64, 1),
        (1.0, FieldType.DOUBLE, 1.0),
        ("x", FieldType.STRING, "x"),
        (b"x", FieldType.BLOB, b"x"),
        (True, FieldType.BOOL, True),
        (None, FieldType.NULL, None),
        (NOON, FieldType.TIMESTAMP, NOON),
        ({"b": 1}, FieldType.MESSAGE, Message(b=1)),
        (Message(b=1), FieldType.MESSAGE, Message(b=1)),
        ([1, {"b": [NOON]}], FieldType.LIST, [1, Message(b=[NOON])]),
        ((1, 2), FieldType.LIST, [1, 2]),
        (Field.uint32("", 7), FieldType.UINT32, 7),
    ],
    ids=lambda value: str(value) if isinstance(value, FieldType) else type(value).__name__,
)
def test_a_python_value_has_a_type_by_default(given: Any, kind: FieldType, value: object) -> None:
    [made] = Message(a=given)
    assert (made.name, made.type, made.value) == ("a", kind, value)
    assert made == Field("a", given)


@pytest.mark.req("MM-5")
@pytest.mark.parametrize("kind", [*VALUES, "null"])
def test_a_field_can_be_given_a_type_by_name(kind: str) -> None:
    value = VALUES.get(kind)
    made = Field("n", value, FieldType[kind.upper()])
    assert (made.name, str(made.type), made.value) == ("n", kind, value)
    assert made == (Field.null("n") if kind == "null" else getattr(Field, kind)("n", value))


@pytest.mark.req("MM-5")
@pytest.mark.parametrize(("kind", "low", "high"), RANGES)
def test_an_integer_at_the_edge_of_its_range_comes_through(kind: str, low: int, high: int) -> None:
    made = Message(getattr(Field, kind)("low", low), getattr(Field, kind)("high", high))
    assert Message.from_body(made.encode()).to_dict() == {"low": low, "high": high}


@pytest.mark.req("MM-5")
@pytest.mark.parametrize(
    ("kind", "value"),
    [(kind, beyond) for kind, low, high in RANGES for beyond in (low - 1, high + 1)],
)
def test_an_integer_beyond_its_range_is_refused(kind: str, value: int) -> None:
    with pytest.raises(BadField, match=f"{value} is not in the range of {kind}"):
        getattr(Field, kind)("n", value)


@pytest.mark.parametrize(
    "value",
    [object(), 1 << 63, {1: 2}, datetime(2026, 1, 31), "\ud800", {"\ud800": 1}, ENDLESS],
    ids=["object", "too big", "key", "naive", "surrogate", "surrogate name", "endless"],
)
def test_a_value_that_no_field_can_hold_is_refused(value: object) -> None:
    with pytest.raises(BadField):
        Message(a=value)


@pytest.mark.req("MM-9")
@pytest.mark.parametrize("name", ["\ud800", 1, None], ids=ascii)
def test_a_name_that_is_no_text_is_refused(name: Any) -> None:
    with pytest.raises(BadField):
        Field(name, 1)


@pytest.mark.parametrize("value", [1, "a", None, {"a": 1}, Message()], ids=repr)
def test_only_fields_are_given_without_a_name(value: Any) -> None:
    with pytest.raises(BadField, match=f"{type(value).__name__} is not a Field"):
        Message(value)


def test_who_gives_a_dict_is_told_what_takes_one() -> None:
    with pytest.raises(BadField, match="from_dict"):
        Message({"a": 1})  # type: ignore[arg-type]


def test_who_looks_for_a_field_in_bare_bytes_is_told_of_them() -> None:
    bare = Message.from_frame(frames.encode(Kind.MESSAGE, b"a", b"x", flags=Flag.BARE))
    with pytest.raises(NoSuchField, match="bare bytes: use payload"):
        bare["a"]


def test_any_name_can_be_a_keyword() -> None:
    assert Message(self=1, fields=2, named=3).to_dict() == {"self": 1, "fields": 2, "named": 3}


@pytest.mark.req("MM-4")
@pytest.mark.parametrize("more", [0, 20], ids=["few fields", "many fields"])
def test_look_up_gives_the_first_of_a_name_and_iteration_all(more: int) -> None:
    rest = [Field(f"x{number}", number) for number in range(more)]
    message = Message(Field("b", 1), Field("a", 2), Field("b", "x"), *rest, b=4)
    assert [message["b"], message.get("b"), message.get_int64("b")] == [1, 1, 1]
    assert [field.name for field in message][:3] == ["b", "a", "b"]
    assert [field.value for field in message.fields("b")] == [1, "x", 4]
    assert list(message) == message.fields()
    assert len(message) == 4 + more


@pytest.mark.parametrize(("name", "is_there"), [("a", True), ("b", False), (1, False)])
def test_a_message_contains_its_names(name: object, is_there: bool) -> None:
    assert (name in Message(a=None)) is is_there


@pytest.mark.req("MM-5")
@pytest.mark.parametrize("kind", VALUES)
def test_a_typed_get_gives_the_value(kind: str) -> None:
    again = Message.from_body(EVERYTHING.encode())
    assert getattr(again, f"get_{kind}")(kind) == again[kind] == again.get(kind) == VALUES[kind]


NUMBERS = {"int32", "uint32", "int64", "uint64", "double"}


@pytest.mark.req("MM-5")
@pytest.mark.parametrize("is_flat", [True, False])
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("double", 21),
        ("double", 1 << 53),
        ("double", Field.uint64("n", 1 << 63)),
        ("int32", -(1 << 31)),
        ("uint32", (1 << 32) - 1),
        ("uint64", 0),
        ("int64", 21.0),
        ("int32", -21.0),
        ("int64", Field.uint64("n", 5)),
        ("uint64", Field.int32("n", 5)),
    ],
)
def test_a_number_is_given_as_any_type_that_holds_it(kind: str, value: Any, is_flat: bool) -> None:
    message = numbered(value, is_flat)
    number = getattr(message, f"get_{kind}")("n")
    assert number == message["n"]
    assert type(number) is (float if kind == "double" else int)


@pytest.mark.req("MM-5")
@pytest.mark.parametrize("is_flat", [True, False])
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("double", (1 << 53) + 1),
        ("int32", 1 << 31),
        ("uint32", -1),
        ("uint64", -1),
        ("int64", 21.5),
        ("int64", float("inf")),
        ("int64", float("nan")),
        ("int64", 1e300),
        ("int64", Field.uint64("n", 1 << 63)),
    ],
)
def test_a_number_is_never_rounded(kind: str, value: Any, is_flat: bool) -> None:
    with pytest.raises(WrongType, match=f"^field 'n' has type .*, and {kind} cannot hold its"):
        getattr(numbered(value, is_flat), f"get_{kind}")("n")


def numbered(value: Any, is_flat: bool) -> Message:
    field = value if isinstance(value, Field) else Field("n", value)
    rest = [] if is_flat else [Field("inner", {"x": 1})]
    return Message.from_body(Message(field, *rest).encode())


@pytest.mark.req("MM-5")
@pytest.mark.parametrize(
    ("get", "name"),
    [
        (f"get_{kind}", name)
        for kind in VALUES
        for name in EVERYTHING.to_dict()
        if kind != name and not {kind, name} <= NUMBERS
    ]
    + [("get_timestamp_ns", "int64")],
)
def test_a_get_of_the_wrong_type_is_an_error(get: str, name: str) -> None:
    with pytest.raises(WrongType, match=f"^field '{name}' has type {name}, not ") as caught:
        getattr(EVERYTHING, get)(name)
    assert isinstance(caught.value, TypeError)


def test_a_timestamp_keeps_what_a_datetime_rounds_down() -> None:
    message = Message(Field.timestamp("t", -1))
    assert message.get_timestamp_ns("t") == -1
    assert message.get_timestamp("t") == datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)


@pytest.mark.parametrize("get", ["__getitem__", "get_timestamp_ns", *(f"get_{k}" for k in VALUES)])
def test_a_missing_name_is_an_error(get: str) -> None:
    with pytest.raises(NoSuchField) as caught:
        getattr(Message(a=1, b=2), get)("c")
    assert isinstance(caught.value, KeyError)
    assert isinstance(caught.value, UsageError)
    assert str(caught.value) == "no field 'c' among 'a', 'b'"


@pytest.mark.parametrize(("asked", "value"), [(("a", 7), 1), (("b", 7), 7), (("b",), None)])
def test_get_gives_the_default_only_for_a_missing_name(asked: Any, value: object) -> None:
    assert Message(a=1).get(*asked) == value


def test_a_message_does_not_change_with_what_it_was_made_of_or_gave() -> None:
    items, blob = [1], bytearray(b"x")
    message = Message(items=items, blob=blob)
    items.append(2)
    blob.append(0)
    message["items"].append(3)
    assert message.to_dict() == {"items": [1], "blob": b"x"}


@pytest.mark.req("MM-6")
@pytest.mark.parametrize(
    "make",
    [Message.from_dict, lambda v: Message(**v), lambda v: Message(Field("m", v["m"]))],
    ids=["dict", "named", "field"],
)
def test_messages_nest_to_the_depth_limit(make: Any) -> None:
    message = Message.from_body(make(nested(DEPTH_MAX)).encode())
    for _ in range(DEPTH_MAX - 1):
        message = message.get_message("m")
    assert message["bottom"] == 1


@pytest.mark.req("MM-6")
@pytest.mark.parametrize(
    "make",
    [lambda m: Message(m=m), lambda m: Message(Field("m", m)), lambda m: Field("m", m)],
    ids=["named", "field", "field alone"],
)
def test_what_is_over_the_depth_limit_is_refused_when_made(make: Any) -> None:
    inner = Message.from_dict(nested(DEPTH_MAX))
    with pytest.raises(BadField, match="nesting 17 deep is over the limit of 16"):
        make(inner)


@pytest.mark.req("MM-6")
def test_a_received_message_over_the_depth_limit_is_refused() -> None:
    body = bytes.fromhex("01000000 00000000 07") + Message(**nested(DEPTH_MAX)).encode()
    with pytest.raises(MessageTooBig, match="nesting is over the limit of 16"):
        len(received(body))


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (Message(a=1, b=2), Message(Field("a", 1), Field("b", 2)), True),
        (Message(a=1, b=2), Message(b=2, a=1), False),
        (Message(a=1), Message(Field.int32("a", 1)), False),
        (Message(a=1), Message(a=True), False),
        (Message(a=math.nan), Message(a=math.nan), True),
        (Message(a=0.0), Message(a=-0.0), False),
        (EVERYTHING, received(EVERYTHING.encode()), True),
        (Message.from_payload(b"x"), received(b"x", Flag.BARE), True),
        (Message(a=1), 1, False),
        (Field("a", math.nan), Field("a", math.nan), True),
        (Field("a", 1), Field("b", 1), False),
        (Field("a", 1), 1, False),
    ],
)
def test_equality_is_that_of_the_bytes(left: object, right: object, equal: bool) -> None:
    assert (left == right) is equal
    assert (len({left, right}) == 1) is equal


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Message(Field.uint32("n", 7), a="x"), "Message(n=uint32(7), a='x')"),
        (received(Message(a=1).encode()), "Message('a.b', a=1)"),
        (received(b"x", Flag.BARE), "Message('a.b', b'x')"),
        (Field("a", 1.5), "Field.double('a', 1.5)"),
        (Field("m", {"b": 1}), "Field.message('m', Message(b=1))"),
    ],
    ids=str,
)
def test_a_message_and_a_field_show_what_they_hold(value: object, shown: str) -> None:
    assert repr(value) == shown


@pytest.mark.parametrize("way", [pickled, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_a_copy_keeps_the_fields_and_the_envelope(make: Callable[[], Message], way: Any) -> None:
    message, again = make(), way(make())
    assert (again, again.fields()) == (message, message.fields())
    assert (again.subject, again.time) == (message.subject, message.time)


@pytest.mark.parametrize("field", EVERYTHING.fields(), ids=lambda field: field.name)
def test_a_field_survives_pickling(field: Field) -> None:
    assert pickled(field) == field


@pytest.mark.parametrize(
    "use", [len, list, Message.to_dict, Message.to_json, Message.raw_form, Message.fields]
)
@pytest.mark.parametrize("make", [Message.from_body, received])
def test_a_bad_body_is_an_error_on_first_use_and_not_before(
    make: Callable[[bytes], Message], use: Callable[[Message], object]
) -> None:
    message = make(b"garbage")
    assert message.encode() == b"garbage"
    with pytest.raises(BadMessage):
        use(message)


@pytest.mark.parametrize("make", [Message.from_body, received])
def test_a_bad_body_can_still_be_shown(make: Callable[[bytes], Message]) -> None:
    assert repr(make(b"garbage")).startswith("<Message that cannot be read: ")


def test_an_error_does_not_repeat_long_names() -> None:
    message = Message(**{"n" * 100_000: 1})
    with pytest.raises(NoSuchField) as caught:
        message["m" * 100_000]
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("made", [Message.from_body, Message.from_frame])
def test_a_message_is_made_from_any_bytes(made: Callable[[Any], Message]) -> None:
    frame = frames.encode(Kind.MESSAGE, b"a", Message(x=1).encode())
    data = frame if made is Message.from_frame else Message(x=1).encode()
    assert made(bytearray(data)) == Message(x=1)


def test_a_received_message_has_its_envelope_and_its_fields() -> None:
    message = received(Message(value=21.5).encode())
    assert (message.subject, message.reply, message["value"]) == ("a.b", "reply.to", 21.5)
    assert (message.origin, message.publisher, message.sequence, message.time) == (1, 2, 3, 4)


@pytest.mark.parametrize("message", [EVERYTHING, TYPED, Message()], ids=["all", "typed", "empty"])
def test_a_received_body_is_encoded_again_byte_for_byte(message: Message) -> None:
    body = message.encode()
    assert received(body).encode() == body
    assert Message(*received(body)).encode() == body


@pytest.mark.req("MM-7")
def test_an_opaque_payload_beside_header_fields_is_untouched() -> None:
    message = received(Message(Field.uint32("version", 1), kind="quote", body=EVERY_BYTE).encode())
    assert (message.get_uint32("version"), message["kind"]) == (1, "quote")
    assert message.get_blob("body") == EVERY_BYTE


@pytest.mark.req("MM-7")
@pytest.mark.parametrize("payload", [b"", EVERY_BYTE], ids=["empty", "every byte"])
def test_a_bare_frame_is_one_unnamed_blob(payload: bytes) -> None:
    message = received(payload, Flag.BARE | Flag.REQUEST)
    assert message.payload == message[""] == payload
    assert message.fields() == [Field.blob("", payload)]
    assert message.encode() == Message.from_payload(payload).encode()


@pytest.mark.parametrize(
    "message",
    [Message(), Message(a=b"x"), Message(Field("", "x")), Message(Field("", b"x"), a=1)],
    ids=repr,
)
def test_a_message_with_fields_of_its_own_has_no_payload(message: Message) -> None:
    with pytest.raises(WrongType, match="not bare bytes"):
        _ = message.payload


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_a_message_is_put_behind_what_is_being_written(make: Callable[[], Message]) -> None:
    writer = Writer()
    writer.put(b"head")
    make().put(writer)
    assert writer.take() == b"head" + make().encode()


@pytest.mark.parametrize("there", [Message.to_dict, Message.to_json])
def test_a_message_comes_back_from_a_dict_and_from_json(there: Callable[[Message], Any]) -> None:
    message = Message(b=1, a=[NOON, b"x", {"$blob": None}], c={"d": 1.0})
    back = Message.from_dict if there is Message.to_dict else Message.from_json
    assert back(there(message)) == message


def test_there_is_no_field_type_99() -> None:
    with pytest.raises(BadField, match="no field type 99"):
        Field("x", 1, 99)  # type: ignore[arg-type]  # what an untyped caller may do


def test_a_payload_may_also_come_with_its_wrapping() -> None:
    wrapped = Message.from_body(Message.from_payload(b"\x00\xff").encode())
    assert wrapped.payload == b"\x00\xff"
