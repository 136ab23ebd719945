import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft import Field, FieldType, Message
from weft.cli.options.field import field_from_text
from weft.errors import BadField


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("city=London", Field.string("city", "London")),
        ("city:string=a=b:c", Field.string("city", "a=b:c")),
        ("empty=", Field.string("empty", "")),
        ("=unnamed", Field.string("", "unnamed")),
        ("a:b:string=x", Field.string("a:b", "x")),
        ("n:int32=-7", Field.int32("n", -7)),
        ("n:uint32=7", Field.uint32("n", 7)),
        ("n:int64=-9223372036854775808", Field.int64("n", -(1 << 63))),
        ("n:uint64=18446744073709551615", Field.uint64("n", (1 << 64) - 1)),
        ("x:double=21.5", Field.double("x", 21.5)),
        ("x:double=-inf", Field.double("x", float("-inf"))),
        ("ok:bool=true", Field.bool("ok", True)),
        ("ok:bool=false", Field.bool("ok", False)),
        ("raw:blob=aGVsbG8=", Field.blob("raw", b"hello")),
        ("raw:blob=", Field.blob("raw", b"")),
        (
            "t:timestamp=2026-01-31T12:00:00.123456789Z",
            Field.timestamp("t", 1_769_860_800_123_456_789),
        ),
        ("nothing:null", Field.null("nothing")),
        ("nothing:null=", Field.null("nothing")),
        ('m:message={"a":1}', Field.message("m", Message(a=1))),
        ('l:list=[1,"two",null]', Field.list("l", [1, "two", None])),
    ],
)
def test_every_type_can_be_typed(text: str, field: Field) -> None:
    assert field_from_text(text) == field


def test_every_type_that_exists_can_be_typed() -> None:
    with pytest.raises(BadField) as refused:
        field_from_text("x:unheard_of=1")
    assert all(str(kind) in str(refused.value) for kind in FieldType)


def test_now_is_the_present_moment() -> None:
    before_ns = time.time_ns()
    moment: datetime = field_from_text("t:timestamp=now").value
    assert moment.tzinfo == UTC
    assert Message(Field.timestamp("t", before_ns))["t"] <= moment


def test_a_blob_can_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "photo"
    file.write_bytes(b"\x00\xff")
    assert field_from_text(f"photo:blob=@{file}") == Field.blob("photo", b"\x00\xff")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("just_a_name", "has no value"),
        ("x:int=1", "no field type 'int'"),
        ("n:int32=2147483648", "field 'n': "),
        ("n:uint32=-1", "field 'n': "),
        ("n:int64=1.5", "'1.5' is not a whole number"),
        ("n:uint64=", "'' is not a whole number"),
        ("x:double=warm", "'warm' is not a number"),
        ("ok:bool=yes", "'yes' is neither true nor false"),
        ("raw:blob=???", "$blob is not base64"),
        ("raw:blob=@/no/such/file", "cannot be read: No such file"),
        ("t:timestamp=yesterday", "RFC 3339"),
        ("nothing:null=1", "null has no value"),
        ("m:message=[1]", "is not a message in JSON"),
        ("m:message=", "not JSON"),
        ("l:list={}", "is not a list in JSON"),
        ('l:list=[1],"other":[2]', "is not a list in JSON"),
        ('m:message={"a":1}}', "not JSON"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_in_words(text: str, part: str) -> None:
    with pytest.raises(BadField) as refused:
        field_from_text(text)
    assert part in str(refused.value)


@given(st.text(), st.text())
def test_any_string_can_be_typed(name: str, value: str) -> None:
    if "=" not in name:
        assert field_from_text(f"{name}:string={value}") == Field.string(name, value)
