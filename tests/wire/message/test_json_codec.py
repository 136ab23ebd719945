import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadField
from weft.wire.message.codec import encode_fields
from weft.wire.message.from_python import fields_from_mapping
from weft.wire.message.json_codec import (
    data_from_fields,
    fields_from_data,
    fields_from_json,
    json_from_fields,
)
from weft.wire.message.message import Field
from weft.wire.message.types import DEPTH_MAX, FIELDS_MAX, VALUES_MAX, Fields, FieldType

INT64_MAX = (1 << 63) - 1
UINT64_MAX = (1 << 64) - 1
NOON_NS = 1_769_860_800_000_000_000

# A NaN keeps no bits of its own in JSON: only the usual one comes back as the same bytes.
doubles = st.floats(allow_nan=False) | st.just(math.nan)
timestamps = st.integers(-(1 << 63), INT64_MAX).map(lambda ns: Field.timestamp("", ns))
beyond_int64 = st.integers(INT64_MAX + 1, UINT64_MAX).map(lambda n: Field.uint64("", n))
scalars = st.one_of(
    st.text(max_size=6),
    st.integers(-(1 << 63), INT64_MAX),
    beyond_int64,
    doubles,
    st.booleans(),
    st.none(),
    st.binary(max_size=6),
    timestamps,
)
names = st.sampled_from(["$blob", "$double", "$timestamp", "$$blob", "$$$double"]) | st.text(
    max_size=3
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)


def field(value: object) -> Fields:
    return fields_from_mapping({"a": value}, 1)


def only(text: str) -> tuple[FieldType, Any]:
    """The type and raw value of the one field of a JSON object."""
    fields = fields_from_json(text)
    assert (len(fields), fields.names) == (1, ["a"])
    return FieldType(fields.kinds[0]), fields.values[0]


def arrays(depth: int) -> str:
    """A JSON object whose innermost array is so deep."""
    return '{"a":' + "[" * (depth - 1) + "]" * (depth - 1) + "}"


@given(st.dictionaries(names, values, max_size=4))
def test_json_keeps_the_value_and_type_of_what_it_has_words_for(mapping: dict[str, Any]) -> None:
    fields = fields_from_mapping(mapping, 1)
    assert encode_fields(fields_from_json(json_from_fields(fields))) == encode_fields(fields)


FORMS = [
    ("text", '"text"'),
    ("žluť\n\"'\0", '"žluť\\n\\"\'\\u0000"'),
    (True, "true"),
    (False, "false"),
    (None, "null"),
    (0, "0"),
    (-(1 << 63), "-9223372036854775808"),
    (INT64_MAX, "9223372036854775807"),
    (Field.uint64("", UINT64_MAX), "18446744073709551615"),
    (1.0, "1.0"),
    (-0.0, "-0.0"),
    (1e300, "1e+300"),
    (math.nan, '{"$double":"NaN"}'),
    (math.inf, '{"$double":"Infinity"}'),
    (-math.inf, '{"$double":"-Infinity"}'),
    (b"", '{"$blob":""}'),
    (b"\xff\0\xfe", '{"$blob":"/wD+"}'),
    (Field.timestamp("", NOON_NS), '{"$timestamp":"2026-01-31T12:00:00Z"}'),
    (Field.timestamp("", NOON_NS + 1), '{"$timestamp":"2026-01-31T12:00:00.000000001Z"}'),
    (Field.timestamp("", NOON_NS + 120_000), '{"$timestamp":"2026-01-31T12:00:00.00012Z"}'),
    (Field.timestamp("", -1), '{"$timestamp":"1969-12-31T23:59:59.999999999Z"}'),
    (Field.timestamp("", -(1 << 63)), '{"$timestamp":"1677-09-21T00:12:43.145224192Z"}'),
    ([], "[]"),
    ([1, "x", [None]], '[1,"x",[null]]'),
    ({}, "{}"),
    ({"b": 1, "a": {}}, '{"b":1,"a":{}}'),
    ({"$blob": "text"}, '{"$$blob":"text"}'),
    ({"$$double": b""}, '{"$$$double":{"$blob":""}}'),
    ([{"$timestamp": 1}], '[{"$$timestamp":1}]'),
    ({"$blob": 1, "b": 2}, '{"$blob":1,"b":2}'),
    ({"$other": 1}, '{"$other":1}'),
    ({"blob": 1}, '{"blob":1}'),
]


@pytest.mark.parametrize(("value", "text"), FORMS, ids=[text for _, text in FORMS])
def test_a_value_is_written_in_its_json_form(value: object, text: str) -> None:
    assert json_from_fields(field(value)) == f'{{"a":{text}}}'


@pytest.mark.parametrize(("value", "text"), FORMS, ids=[text for _, text in FORMS])
def test_a_json_form_is_read_as_its_value(value: object, text: str) -> None:
    assert encode_fields(fields_from_json(f'{{"a":{text}}}')) == encode_fields(field(value))


@pytest.mark.parametrize("name", ["$blob", "$timestamp", "$double", "$$blob"])
def test_a_typed_name_in_the_message_itself_is_just_a_name(name: str) -> None:
    text = json.dumps({name: 1}, separators=(",", ":"))
    assert json_from_fields(fields_from_json(text)) == text
    assert fields_from_json(text).names == [name]


@pytest.mark.parametrize(
    ("text", "kind", "raw"),
    [
        ("1", FieldType.INT64, 1),
        ("-0", FieldType.INT64, 0),
        ("1.0", FieldType.DOUBLE, 1.0),
        ("1e2", FieldType.DOUBLE, 100.0),
        ("9223372036854775807", FieldType.INT64, INT64_MAX),
        ("9223372036854775808", FieldType.UINT64, INT64_MAX + 1),
        ("9223372036854775808.0", FieldType.DOUBLE, 2.0**63),
    ],
)
def test_how_a_number_is_written_decides_its_type(text: str, kind: FieldType, raw: object) -> None:
    assert only(f'{{"a":{text}}}') == (kind, raw)


@pytest.mark.parametrize("make", [Field.int32, Field.uint32, Field.uint64])
def test_a_small_integer_of_any_type_comes_back_as_int64(make: Any) -> None:
    assert only(json_from_fields(field(make("", 7)))) == (FieldType.INT64, 7)


@pytest.mark.parametrize(
    ("text", "time_ns"),
    [
        ("2026-01-31T12:00:00Z", NOON_NS),
        ("2026-01-31T12:00:00.5Z", NOON_NS + 500_000_000),
        ("2026-01-31T12:00:00.000000001Z", NOON_NS + 1),
        ("2026-01-31T14:30:00.25+02:30", NOON_NS + 250_000_000),
        ("2026-01-31T11:00:00-01:00", NOON_NS),
        ("2262-04-11T23:47:16.854775807Z", INT64_MAX),
    ],
)
def test_a_timestamp_is_read_to_the_nanosecond_in_any_zone(text: str, time_ns: int) -> None:
    assert only(f'{{"a":{{"$timestamp":"{text}"}}}}') == (FieldType.TIMESTAMP, time_ns)


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T12:00:00",
        "2026-01-31 12:00:00Z",
        "2026-01-31",
        "2026-01-31T12:00Z",
        "2026-01-31T12:00:00.Z",
        "2026-01-31T12:00:00.1234567890Z",
        "2026-01-31T12:00:00.\u0663Z",
        "\u0662026-01-31T12:00:00Z",
        "2026-01-31T12:00:00+0100",
        "2026-01-31T12:00:00+25:00",
        "2026-02-30T12:00:00Z",
        "2026-01-31T12:00:61Z",
        "2026-01-31T12:00:00Z\\n",
        "2262-04-11T23:47:16.854775808Z",
        "1677-09-21T00:12:43.145224191Z",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
        "",
    ],
    ids=ascii,
)
def test_a_timestamp_that_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(BadField, match="timestamp"):
        fields_from_json(f'{{"a":{{"$timestamp":"{text}"}}}}')


@pytest.mark.parametrize(
    "text",
    ["A", "AB=", "A===", "AAAA=", "=", "AA==AA==", "AA\\n==", "A-_A", " AAAA", "é", "\u0661"],
)
def test_a_blob_that_is_not_base64_is_refused(text: str) -> None:
    with pytest.raises(BadField, match=r"\$blob is not base64"):
        fields_from_json(f'{{"a":{{"$blob":"{text}"}}}}')


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("null", "null"),
        ("true", "a boolean"),
        ("1", "a number"),
        ("1.5", "a number"),
        ("[]", "an array"),
        ("{}", "an object"),
    ],
)
def test_a_blob_that_is_no_string_is_refused(text: str, kind: str) -> None:
    with pytest.raises(BadField, match=f"is a base64 string, not {kind}"):
        fields_from_json(f'{{"a":{{"$blob":{text}}}}}')


@pytest.mark.parametrize("text", ["null", "1", "[]", "{}"])
def test_a_timestamp_that_is_no_string_is_refused(text: str) -> None:
    with pytest.raises(BadField, match=r"\$timestamp is RFC 3339 with a time zone"):
        fields_from_json(f'{{"a":{{"$timestamp":{text}}}}}')


@pytest.mark.parametrize("text", ['"nan"', '"1.5"', '""', "1.5", "null", "[]", '["NaN"]'])
def test_a_double_by_another_word_is_refused(text: str) -> None:
    with pytest.raises(BadField, match=r"\$double is one of NaN, Infinity, -Infinity"):
        fields_from_json(f'{{"a":{{"$double":{text}}}}}')


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_json_has_no_word_for_is_refused(constant: str) -> None:
    with pytest.raises(BadField, match=f'not JSON: {constant}; .*"\\$double": "{constant}"'):
        fields_from_json(f'{{"a":{constant}}}')


@pytest.mark.parametrize("text", ["1e309", "-1e309"])
def test_a_number_over_the_range_of_a_double_is_refused(text: str) -> None:
    with pytest.raises(BadField, match="over the range of a double"):
        fields_from_json(f'{{"a":{text}}}')


@pytest.mark.parametrize(
    "text", ["18446744073709551616", "-9223372036854775809", "9" * 4_000, "9" * 5_000], ids=len
)
def test_an_integer_over_every_range_is_refused(text: str) -> None:
    with pytest.raises(BadField):
        fields_from_json(f'{{"a":{text}}}')


@pytest.mark.parametrize(
    "text", ["", "{", "{}x", "{a:1}", "{'a':1}", '{"a":}', '{"a":01}', '{"a":"\n"}', b"\xff{}"]
)
def test_what_is_not_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(BadField, match=r"^not JSON: "):
        fields_from_json(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[]", "an array"),
        ('"x"', "a string"),
        ("1", "a number"),
        ("1.5", "a number"),
        ("true", "a boolean"),
        ("null", "null"),
    ],
)
def test_what_is_no_object_is_no_message(text: str, kind: str) -> None:
    with pytest.raises(BadField, match=f"a message is a JSON object, not {kind}"):
        fields_from_json(text)


@pytest.mark.req("MM-9")
def test_json_is_read_from_utf8_bytes() -> None:
    assert fields_from_json('{"ž":"ť"}'.encode()).values == ["ť"]


@pytest.mark.req("MM-9")
@pytest.mark.parametrize("text", ['{"\\ud800":1}', '{"a":"\\udfff"}'])
def test_half_of_a_surrogate_pair_in_json_is_refused(text: str) -> None:
    with pytest.raises(BadField, match="half of a surrogate pair"):
        fields_from_json(text)


@pytest.mark.req("MM-9")
@pytest.mark.parametrize("text", [b'{"a":"\xed\xa0\x80"}', "{}".encode("utf-16"), b"\xff"])
def test_json_bytes_that_are_not_utf8_are_refused(text: bytes) -> None:
    with pytest.raises(BadField, match="not JSON"):
        fields_from_json(text)


@pytest.mark.parametrize(
    "text", ['{"k":1,"k":1}', '{"x":0,"k":1,"k":2}', '{"a":[{"k":1,"b":2,"k":3}]}']
)
def test_a_key_that_occurs_twice_is_refused(text: str) -> None:
    with pytest.raises(BadField, match="the key 'k' occurs twice"):
        fields_from_json(text)


@pytest.mark.req("MM-4")
def test_of_a_name_that_occurs_twice_the_first_is_written() -> None:
    fields = Fields(False)
    for name, number in [("b", 1), ("a", 2), ("b", 3)]:
        fields.add(name, FieldType.INT64, number)
    assert json_from_fields(fields) == '{"b":1,"a":2}'


@pytest.mark.req("MM-6")
def test_json_may_nest_to_the_depth_limit() -> None:
    assert fields_from_json(arrays(DEPTH_MAX)).depth == DEPTH_MAX


@pytest.mark.req("MM-6")
@pytest.mark.parametrize(
    "text",
    [
        arrays(DEPTH_MAX + 1),
        '{"a":' * (DEPTH_MAX + 1) + "1" + "}" * (DEPTH_MAX + 1),
        arrays(600),
        arrays(100_000),
        "[" * 100_000,
    ],
    ids=["arrays", "objects", "deep", "bomb", "unfinished bomb"],
)
def test_json_over_the_depth_limit_is_refused(text: str) -> None:
    with pytest.raises(BadField, match="over the limit of 16"):
        fields_from_json(text)


def test_json_with_too_many_keys_is_refused() -> None:
    with pytest.raises(BadField, match="over the limit of 4096 fields"):
        fields_from_json(json.dumps(dict.fromkeys(map(str, range(FIELDS_MAX + 1)))))


def test_json_with_too_many_values_is_refused() -> None:
    with pytest.raises(BadField, match="65537 values"):
        fields_from_json(json.dumps({"a": [None] * VALUES_MAX}))


@pytest.mark.parametrize("text", [None, 5, ["{}"]], ids=repr)
def test_what_is_no_text_is_no_json(text: Any) -> None:
    with pytest.raises(BadField, match="not JSON"):
        fields_from_json(text)


def test_a_long_key_is_not_repeated_in_the_error() -> None:
    key = "k" * 100_000
    with pytest.raises(BadField) as caught:
        fields_from_json(f'{{"{key}":1,"{key}":2}}')
    assert len(str(caught.value)) < 200


@given(values)
def test_data_comes_back_as_the_message_that_it_was(value: Any) -> None:
    fields = fields_from_mapping({"": value}, 1) if not isinstance(value, dict) else None
    fields = fields or fields_from_mapping(value, 1)
    data = json.loads(json.dumps(data_from_fields(fields), allow_nan=False))
    assert encode_fields(fields_from_data(data)) == encode_fields(fields)


@pytest.mark.parametrize("value", [None, True, 7, -1, 1.5, "x", [], [1, [2]], UINT64_MAX])
def test_what_is_no_object_is_one_unnamed_field(value: Any) -> None:
    fields = fields_from_data(value)
    assert list(fields.names) == [""]
    assert data_from_fields(fields) == value


@pytest.mark.parametrize("value", [{}, {"a": 1}, {"": {"a": 1}}, {"": {}}, {"a": None, "": 1}])
def test_an_object_is_the_fields_of_a_message(value: dict[str, Any]) -> None:
    fields = fields_from_data(value)
    assert list(fields.names) == list(value)
    assert data_from_fields(fields) == value


@pytest.mark.parametrize("value", [{"": 7}, {"": None}, {"": {"": 7}}, {"": {"a": 7}}, {"": {}}])
def test_an_object_whose_one_key_is_empty_stays_one(value: object) -> None:
    assert data_from_fields(fields_from_data(value)) == value


def test_a_message_that_looks_like_a_word_of_json_gets_a_dollar() -> None:
    fields = fields_from_mapping({"$blob": "no base64"}, 1)
    assert data_from_fields(fields) == {"$$blob": "no base64"}
    assert encode_fields(fields_from_data({"$$blob": "no base64"})) == encode_fields(fields)


def test_an_object_may_be_as_deep_as_a_message_and_an_array_one_less() -> None:
    nested: Any = 1
    for _ in range(DEPTH_MAX - 1):
        nested = [nested]
    assert data_from_fields(fields_from_data(nested)) == nested
    assert data_from_fields(fields_from_data({"a": nested})) == {"a": nested}
    with pytest.raises(BadField):
        fields_from_data([nested])
    with pytest.raises(BadField):
        fields_from_data({"a": [nested]})
