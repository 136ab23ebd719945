import json

import pytest

from weft import Field, Message
from weft.cli.output.message_text import (
    BODY_MAX,
    FIELDS_MAX,
    VALUE_MAX,
    bare_payload,
    bare_text,
    body_text,
    clock,
    message_json,
    message_line,
    printable,
)
from weft.wire import frames
from weft.wire.frames import Flag, Kind

NOON_NS = 1_769_860_800_123_456_789


def received(body: bytes | Message, subject: str = "sensors.london") -> Message:
    """A message as it comes from a gateway."""
    is_bare = isinstance(body, bytes)
    frame = bytearray(
        frames.encode(
            Kind.MESSAGE,
            subject.encode(),
            body if isinstance(body, bytes) else body.encode(),
            b"answers.here",
            Flag.BARE if is_bare else Flag.NONE,
        )
    )
    run = frames.Run()
    assert run.read(frame, 0, len(frame))
    run.stamp(frame, frames.Stamp(origin=3, publisher=4, sequence=5, time_ns=NOON_NS))
    return Message.from_frame(frame)


def test_a_line_has_time_subject_and_fields() -> None:
    line = message_line(received(Message(city="London", temp=21.5)))
    assert line == f'{clock(NOON_NS)}  sensors.london  city="London" temp=21.5'


def test_the_time_is_shown_to_the_microsecond() -> None:
    assert clock(NOON_NS).endswith(":00.123456")


def test_every_type_has_a_short_form() -> None:
    message = Message(
        Field.uint32("u", 7),
        Field.timestamp("t", NOON_NS),
        Field.list("l", [1, "two", [True]]),
        Field.blob("b", b"\x00\x01\xff\xfe\x10"),
        Field.blob("e", b""),
        x=1.5,
        yes=True,
        nothing=None,
        inner=Message(a=1, b="two"),
    )
    assert body_text(received(message)) == (
        'u=7 t=2026-01-31T12:00:00.123456789Z l=[1, "two", [true]] b=<5 bytes: 0001fffe 10>'
        ' e=<0 bytes> x=1.5 yes=true nothing=null inner={a=1 b="two"}'
    )


def test_an_item_of_a_list_is_shown_as_the_type_it_has() -> None:
    items = [Field.uint64("", (1 << 64) - 1), Field.timestamp("", NOON_NS), Message(n=[None])]
    assert body_text(received(Message(Field.list("l", items)))) == (
        "l=[18446744073709551615, 2026-01-31T12:00:00.123456789Z, {n=[null]}]"
    )


def test_bare_bytes_are_shown_as_text_if_they_are_text() -> None:
    assert body_text(received("21,5 °C".encode())) == "21,5 °C"


def test_bare_bytes_are_shown_in_hex_if_they_are_no_text() -> None:
    assert body_text(received(b"\xff\x00")) == "<2 bytes: ff00>"


def test_a_control_character_never_reaches_the_terminal() -> None:
    message = received(Message(Field.string("a\x1bb", "\x1b[2J\u009b1m\u202e")), "s\u009bt")
    for shown in (message_line(message), message_line(received(b"one\ntwo\x1b]0;x\x07"))):
        assert shown.isprintable()


def test_printable_text_is_left_alone() -> None:
    assert printable("Zürich 東京") == "Zürich 東京"
    assert printable("a\tb\n") == "a\\tb\\n"


def test_long_values_are_cut() -> None:
    length = VALUE_MAX + 10
    assert body_text(received(b"x" * length)) == f"{'x' * VALUE_MAX}… of {length} characters"
    assert len(body_text(received(b"\xff" * 10_000))) < VALUE_MAX
    assert body_text(received(Message(text="x" * length))).endswith("… of 268 characters")


def test_many_fields_and_items_are_cut() -> None:
    many = {f"n{number}": number for number in range(FIELDS_MAX + 3)}
    assert body_text(received(Message(**many))).endswith(" … 3 more")
    assert body_text(received(Message(many=list(many.values())))).endswith(", … 3 more]")
    deep = Message(**{f"n{number}": Message(**many) for number in range(FIELDS_MAX)})
    assert len(body_text(received(deep))) < BODY_MAX + 40


def test_json_has_the_header_and_the_fields() -> None:
    line = message_json(received(Message(Field.timestamp("t", NOON_NS), city="Zürich")))
    assert "\n" not in line
    assert json.loads(line) == {
        "subject": "sensors.london",
        "reply": "answers.here",
        "origin": 3,
        "publisher": 4,
        "sequence": 5,
        "time": NOON_NS,
        "message": {"t": {"$timestamp": "2026-01-31T12:00:00.123456789Z"}, "city": "Zürich"},
    }


def test_json_of_bare_text_has_the_text_too() -> None:
    values = json.loads(message_json(received(b"hello\n")))
    assert values["message"] == {"": {"$blob": "aGVsbG8K"}}
    assert values["text"] == "hello\n"
    assert "text" not in json.loads(message_json(received(b"\xff")))


def test_json_is_never_cut() -> None:
    text = "x" * 100_000
    assert json.loads(message_json(received(Message(text=text))))["message"]["text"] == text


def test_a_body_that_is_no_message_is_shown_as_such() -> None:
    frame = frames.encode(Kind.MESSAGE, b"a", b"\x01")
    broken = Message.from_frame(frame)
    assert body_text(broken).startswith("<cannot be read: ")
    values = json.loads(message_json(broken))
    assert "message" not in values
    assert values["error"]


@pytest.mark.parametrize(
    ("body", "payload", "text"),
    [
        (b"hello", b"hello", "hello"),
        (b"\xff", b"\xff", None),
        (b"", b"", ""),
        (Message(Field.string("", "hello")), None, "hello"),
        (Message(Field.string("", "hello"), a=1), None, None),
        (Message(Field.int32("", 7)), None, None),
        (Message(a="hello"), None, None),
    ],
)
def test_bare_bytes_and_bare_text_are_told_from_fields(
    body: bytes | Message, payload: bytes | None, text: str | None
) -> None:
    assert bare_payload(received(body)) == payload
    assert bare_text(received(body)) == text
