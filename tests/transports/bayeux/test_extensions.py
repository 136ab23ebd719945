from typing import Any

import pytest

from weft.errors import BadField
from weft.transports.bayeux.extensions import (
    binary_from_fields,
    fields_from_binary,
    is_binary,
    time_sync_of,
)
from weft.wire.message.codec import encode_fields
from weft.wire.message.json_codec import data_from_fields, fields_from_data
from weft.wire.message.message import Message
from weft.wire.message.types import FieldType

pytestmark = pytest.mark.req("TUN-24")
ODD: tuple[Any, ...] = ("1", None, True, [], 1 << 53, -1e300)


def test_a_client_is_told_when_its_message_came_and_how_long_it_was_held() -> None:
    message = {"ext": {"timesync": {"tc": 1_000, "l": 20, "o": 500}}}
    sync = time_sync_of(message, 1_530)
    assert sync is not None
    # ts = tc + o + l would be exact: the client is 10 ms behind.
    assert sync.answer(1_600) == {"tc": 1_000, "ts": 1_530, "p": 70, "a": -10}


def test_a_client_that_knows_no_lag_yet_is_answered() -> None:
    sync = time_sync_of({"ext": {"timesync": {"tc": 1_000}}}, 1_530)
    assert sync is not None
    # A clock that was set back does not make a time below zero.
    assert sync.answer(1_000) == {"tc": 1_000, "ts": 1_530, "p": 0, "a": -530}


@pytest.mark.parametrize(
    "ext",
    [
        *(None, [], {}, {"timesync": None}, {"timesync": []}, {"timesync": {}}),
        *({"timesync": {"tc": odd}} for odd in ODD),
        *({"timesync": {"tc": 1, "l": odd}} for odd in ODD),
        *({"timesync": {"tc": 1, "o": odd}} for odd in ODD),
    ],
)
def test_what_is_no_time_is_not_answered(ext: object) -> None:
    assert time_sync_of({"ext": ext}, 1_000) is None


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        ({"data": "HelloWorld", "last": True}, {"": b"\x86O\xd2o\xb5Y\xf7["}),
        ({"data": "", "last": True, "meta": {}}, {"": b""}),
        ({"data": "00000"}, {"": bytes(4)}),
        ({"data": "00000", "meta": None}, {"": bytes(4)}),
        ({"data": "00000", "last": False}, {"data": bytes(4), "last": False}),
        (
            {"data": "00000", "last": True, "meta": {"name": "a.png", "at": 1}},
            {"data": bytes(4), "last": True, "meta": {"name": "a.png", "at": 1}},
        ),
    ],
)
def test_binary_data_is_a_blob_and_comes_back(data: dict[str, Any], fields: dict[str, Any]) -> None:
    found = fields_from_binary(data)
    assert Message.from_body(encode_fields(found)).to_dict() == fields
    again = {"last": True} | data
    assert binary_from_fields(found) == again | {"meta": again.get("meta") or {}}


@pytest.mark.parametrize(
    "data",
    [
        *(None, "00000", [], {}, {"last": True}, {"data": 7}, {"data": {"$blob": "AAAA"}}),
        *({"data": "größe"}, {"data": "a b c"}, {"data": "#####"}),
        *({"data": "00000", "last": 1}, {"data": "00000", "meta": []}, {"data": "0", "more": 1}),
        {"data": "00000", "more": 1},
    ],
)
def test_data_without_bytes_is_refused(data: object) -> None:
    with pytest.raises(BadField):
        fields_from_binary(data)


@pytest.mark.parametrize(
    "data",
    [
        *(7, "text", {}, {"data": "text", "last": True}, {"data": {"$blob": "AAAA"}}),
        {"data": {"$blob": "AAAA"}, "last": 1},
        {"data": {"$blob": "AAAA"}, "last": True, "meta": []},
        {"data": {"$blob": "AAAA"}, "last": True, "more": 1},
        [{"$blob": "AAAA"}],
        {"a": {"$blob": "AAAA"}},
    ],
)
def test_other_messages_are_told_as_they_are(data: object) -> None:
    assert binary_from_fields(fields_from_data(data)) is None


def test_a_message_with_a_name_twice_is_told_as_it_is() -> None:
    fields = fields_from_data({"$blob": "AAAA"})
    fields.add("", FieldType.BLOB, b"more")
    assert binary_from_fields(fields) is None
    assert data_from_fields(fields) == {"": {"$blob": "AAAA"}}


@pytest.mark.parametrize(
    ("ext", "is_so"),
    [
        *(({"binary": {}}, True), ({"binary": True}, True), ({"binary": {"a": 1}}, True)),
        *((None, False), ([], False), ({}, False), ({"binary": False}, False)),
        *(({"binary": None}, False), ({"binary": 1}, False)),
    ],
)
def test_a_message_says_if_it_is_binary(ext: object, is_so: bool) -> None:
    assert is_binary({"ext": ext}) == is_so
