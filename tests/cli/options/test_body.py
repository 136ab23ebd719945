import io

import pytest

from weft import Field, Message
from weft.cli.options import body
from weft.cli.options.body import Content, messages_in_lines
from weft.errors import BadField, BadMessage


def given(
    text: str | None = None, fields: tuple[str, ...] = (), message_json: str | None = None
) -> Content:
    return Content(text=text, field_texts=fields, message_json=message_json)


def test_a_text_is_sent_as_a_string() -> None:
    assert given("21,5 °C").message() == "21,5 °C"


def test_bytes_that_are_no_text_are_sent_as_they_were_typed() -> None:
    assert given("\udcff").message() == b"\xff"


def test_fields_are_sent_in_the_order_given() -> None:
    message = given(fields=("b:int32=1", "a=x")).message()
    assert message == Message(Field.int32("b", 1), a="x")


def test_a_field_is_added_to_a_message_in_json() -> None:
    message = given(fields=("b=2",), message_json='{"a": {"c": [1]}}').message()
    assert message == Message(a=Message(c=[1]), b="2")


def test_an_empty_object_is_a_message_without_fields() -> None:
    assert given(message_json="{}").message() == Message()


def test_nothing_given_is_an_empty_text() -> None:
    assert not given().is_given
    assert given().message() == ""


def test_a_text_beside_fields_is_refused() -> None:
    with pytest.raises(BadField, match="either a text or fields"):
        given("text", ("a=1",)).message()


def test_json_that_is_no_object_is_refused() -> None:
    with pytest.raises(BadField, match="not JSON"):
        given(message_json="").message()
    with pytest.raises(BadField, match="a JSON object, not an array"):
        given(message_json="[]").message()


def test_every_line_is_a_message_without_its_end() -> None:
    lines = io.BytesIO(b"one\r\ntwo\n\n\xff\n three ")
    assert list(messages_in_lines(lines, is_json=False)) == ["one", "two", "", b"\xff", " three "]


def test_only_one_line_end_is_taken_off() -> None:
    lines = io.BytesIO(b"one\r\r\n\r\n\r\rtwo\r")
    assert list(messages_in_lines(lines, is_json=False)) == ["one\r", "", "\r\rtwo\r"]


def test_every_line_of_json_is_a_message_with_its_fields() -> None:
    lines = io.BytesIO(b'{"a":1}\n{"b":"x"}')
    assert list(messages_in_lines(lines, is_json=True)) == [Message(a=1), Message(b="x")]


def test_a_bad_line_of_json_is_named_by_its_number() -> None:
    messages = messages_in_lines(io.BytesIO(b'{"a":1}\n{"b"\n'), is_json=True)
    assert next(messages) == Message(a=1)
    with pytest.raises(BadMessage, match=r"^line 2, column 5: not JSON: Expecting ':' delimiter$"):
        next(messages)


def test_a_line_of_json_that_is_no_object_is_named_by_its_number() -> None:
    with pytest.raises(BadMessage, match=r"^line 1: a message is a JSON object, not an array$"):
        next(messages_in_lines(io.BytesIO(b"[]\n"), is_json=True))


def test_a_line_without_end_is_refused_before_it_fills_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(body, "LINE_MAX_BYTES", 8)
    messages = messages_in_lines(io.BytesIO(b"12345678\n1234567\n123456789"), is_json=False)
    with pytest.raises(BadMessage, match="line 1 is over the limit of 8 bytes"):
        next(messages)
