import math
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadField
from weft.wire.message.field_types import (
    checked_text,
    default_kind,
    moment,
    nanoseconds,
    raw_scalar,
)
from weft.wire.message.types import FieldType

NOON = datetime(2026, 1, 31, 12, 0, 0, 250, tzinfo=UTC)
NOON_NS = 1_769_860_800_000_250_000
I32, U32, I64, U64 = FieldType.INT32, FieldType.UINT32, FieldType.INT64, FieldType.UINT64
STRING, DOUBLE, BOOL = FieldType.STRING, FieldType.DOUBLE, FieldType.BOOL
BLOB, NULL, TIMESTAMP = FieldType.BLOB, FieldType.NULL, FieldType.TIMESTAMP
RANGES = [
    (I32, -(1 << 31), (1 << 31) - 1),
    (U32, 0, (1 << 32) - 1),
    (I64, -(1 << 63), (1 << 63) - 1),
    (U64, 0, (1 << 64) - 1),
    (TIMESTAMP, -(1 << 63), (1 << 63) - 1),
]
INTEGERS = [kind for kind, _, _ in RANGES]


class Level(IntEnum):
    HIGH = 7


class Shout(str):
    __slots__ = ()

    def __str__(self) -> str:
        return self.upper()


class Metres(float):
    pass


class NoOffset(tzinfo):
    """A time zone that does not say how far from UTC it is."""

    def utcoffset(self, _moment: datetime | None) -> None:
        return None

    dst = utcoffset

    def tzname(self, _moment: datetime | None) -> str:
        return "nowhere"


def type_name(value: object) -> str:
    return str(value) if isinstance(value, FieldType) else type(value).__name__


@pytest.mark.req("MM-5")
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("text", STRING),
        (Shout("text"), STRING),
        (True, BOOL),
        (7, I64),
        (Level.HIGH, I64),
        (7.0, DOUBLE),
        (None, NULL),
        (b"bytes", BLOB),
        (bytearray(b"bytes"), BLOB),
        (memoryview(b"bytes"), BLOB),
        (NOON, TIMESTAMP),
    ],
    ids=type_name,
)
def test_a_scalar_has_a_type_by_default(value: object, kind: FieldType) -> None:
    assert default_kind(value) == kind


@pytest.mark.parametrize("value", [[], {}, (), object(), 1j, {1}, NOON.date()], ids=type_name)
def test_what_is_no_scalar_has_no_default_type(value: object) -> None:
    assert default_kind(value) == 0


@pytest.mark.req("MM-5")
@pytest.mark.parametrize(("kind", "low", "high"), RANGES, ids=str)
def test_an_integer_at_the_edge_of_its_range_is_itself(
    kind: FieldType, low: int, high: int
) -> None:
    assert [raw_scalar(kind, low), raw_scalar(kind, high)] == [low, high]


@pytest.mark.req("MM-5")
@pytest.mark.parametrize(("kind", "low", "high"), RANGES, ids=str)
@pytest.mark.parametrize("side", ["under", "over"])
def test_an_integer_beyond_its_range_is_refused(
    kind: FieldType, low: int, high: int, side: str
) -> None:
    value = low - 1 if side == "under" else high + 1
    with pytest.raises(BadField, match=f"^{value} is not in the range of {kind}: {low} … {high}$"):
        raw_scalar(kind, value)


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_an_integer_too_long_to_print_is_refused(kind: FieldType) -> None:
    with pytest.raises(BadField, match=f"not in the range of {kind}"):
        raw_scalar(kind, 10**5000)


@pytest.mark.req("MM-5")
@pytest.mark.parametrize("kind", INTEGERS, ids=str)
@pytest.mark.parametrize("value", [True, 1.0, "1", b"1", None, [1]], ids=repr)
def test_what_is_no_integer_is_refused(kind: FieldType, value: object) -> None:
    with pytest.raises(BadField, match=f"is not a value for a field of type {kind}"):
        raw_scalar(kind, value)


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_a_kind_of_int_becomes_an_int(kind: FieldType) -> None:
    raw = raw_scalar(kind, Level.HIGH)
    assert (type(raw), raw) == (int, 7)


@pytest.mark.req("MM-5")
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (STRING, b"text"),
        (STRING, 1),
        (STRING, None),
        (DOUBLE, True),
        (DOUBLE, "1.0"),
        (DOUBLE, None),
        (BOOL, 0),
        (BOOL, None),
        (BOOL, "true"),
        (BLOB, "text"),
        (BLOB, 5),
        (BLOB, [1, 2]),
        (NULL, 0),
        (NULL, ""),
        (NULL, False),
        (TIMESTAMP, "2026-01-31T12:00:00Z"),
        (TIMESTAMP, NOON.date()),
    ],
)
def test_a_value_of_another_type_is_refused(kind: FieldType, value: object) -> None:
    name = type(value).__name__
    with pytest.raises(BadField, match=f"^{name} is not a value for a field of type {kind}$"):
        raw_scalar(kind, value)


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, math.inf, -math.inf, 5e-324])
def test_a_float_is_a_double_as_it_is(value: float) -> None:
    assert repr(raw_scalar(DOUBLE, value)) == repr(value)


@pytest.mark.parametrize("value", [math.nan, Metres("nan")], ids=["float", "a kind of float"])
def test_nan_is_a_double(value: float) -> None:
    double = raw_scalar(DOUBLE, value)
    assert isinstance(double, float)
    assert math.isnan(double)


@pytest.mark.parametrize("value", [0, -7, 1 << 53, 1 << 80, Metres(1.5)])
def test_what_a_double_holds_exactly_becomes_a_float(value: Any) -> None:
    raw = raw_scalar(DOUBLE, value)
    assert (type(raw), raw) == (float, value)


@pytest.mark.parametrize("value", [(1 << 53) + 1, (1 << 63) - 1, -(1 << 80) - 1])
def test_an_integer_that_a_double_would_round_is_refused(value: int) -> None:
    with pytest.raises(BadField, match="has no exact double"):
        raw_scalar(DOUBLE, value)


@pytest.mark.parametrize("value", [1 << 1024, -(10**5000)], ids=["just over", "far under"])
def test_an_integer_over_the_range_of_a_double_is_refused(value: int) -> None:
    with pytest.raises(BadField, match="over the range of a double"):
        raw_scalar(DOUBLE, value)


@pytest.mark.parametrize("value", [True, False])
def test_a_bool_is_itself(value: bool) -> None:
    assert raw_scalar(BOOL, value) is value


def test_null_is_none() -> None:
    assert raw_scalar(NULL, None) is None


@pytest.mark.parametrize("buffer", [bytes, bytearray, memoryview])
def test_a_blob_is_bytes_of_its_own(buffer: type) -> None:
    raw = raw_scalar(BLOB, buffer(bytes(range(256))))
    assert (type(raw), raw) == (bytes, bytes(range(256)))


@pytest.mark.req("MM-9")
@pytest.mark.parametrize("text", ["", "plain", "a\0b", "žluťoučký kůň", "🧵"])
def test_a_text_is_itself(text: str) -> None:
    assert raw_scalar(STRING, text) == checked_text(text) == text


@pytest.mark.req("MM-9")
@pytest.mark.parametrize(
    "text",
    ["\ud800", "a\udfffz", Shout("\udc80"), "\ud83e" * 1000],
    ids=["high", "low", "kind of str", "long"],
)
def test_half_of_a_surrogate_pair_is_refused(text: str) -> None:
    with pytest.raises(BadField, match="half of a surrogate pair") as caught:
        checked_text(text)
    assert len(str(caught.value)) < 1000


def test_a_kind_of_str_keeps_its_characters() -> None:
    text = checked_text(Shout("quiet"))
    assert (type(text), text) == (str, "quiet")


@pytest.mark.parametrize("value", [None, 1, b"bytes", ["a"]], ids=repr)
def test_what_is_no_str_is_not_text(value: object) -> None:
    with pytest.raises(BadField, match="is not a value for a field of type string"):
        checked_text(value)


@pytest.mark.parametrize(
    ("when", "time_ns"),
    [
        (NOON, NOON_NS),
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), -1_000),
        (datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), 0),
    ],
)
def test_an_aware_datetime_is_ns_since_the_epoch(when: datetime, time_ns: int) -> None:
    assert nanoseconds(when) == raw_scalar(TIMESTAMP, when) == time_ns


@pytest.mark.parametrize("zone", [None, NoOffset()], ids=["no zone", "a zone with no offset"])
def test_a_datetime_with_no_time_zone_is_refused(zone: tzinfo | None) -> None:
    with pytest.raises(BadField, match="no time zone"):
        raw_scalar(TIMESTAMP, NOON.replace(tzinfo=zone))


@pytest.mark.parametrize("year", [1, 1677, 2263, 9999])
def test_a_datetime_out_of_the_range_of_a_timestamp_is_refused(year: int) -> None:
    with pytest.raises(BadField, match="not in the range of timestamp"):
        raw_scalar(TIMESTAMP, datetime(year, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("time_ns", "when"),
    [
        (NOON_NS, NOON),
        (NOON_NS + 999, NOON),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (-1, datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
        (-(1 << 63), datetime(1677, 9, 21, 0, 12, 43, 145_224, tzinfo=UTC)),
        ((1 << 63) - 1, datetime(2262, 4, 11, 23, 47, 16, 854_775, tzinfo=UTC)),
    ],
)
def test_a_moment_is_rounded_down_to_microseconds(time_ns: int, when: datetime) -> None:
    assert moment(time_ns) == when


@pytest.mark.parametrize("time_ns", [0, -1, NOON_NS])
def test_a_moment_is_in_utc(time_ns: int) -> None:
    assert moment(time_ns).tzinfo is UTC


@given(st.integers(-(1 << 63) // 1000 + 1, ((1 << 63) - 1) // 1000))
def test_every_microsecond_comes_back(microseconds: int) -> None:
    assert nanoseconds(moment(microseconds * 1000)) == microseconds * 1000
