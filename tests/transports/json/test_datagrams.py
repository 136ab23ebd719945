import difflib
import json
import math
import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadField, BadOption, BadSubject, UsageError
from weft.transports.json.datagrams import (
    ACK_MAX,
    KEY_MAX,
    OBJECTS_MAX,
    Datagrams,
    datagrams_in,
    error_datagram,
    text_of,
)
from weft.wire.frames import Flag, Frame, Kind, encode, parse
from weft.wire.message.message import Message

NO_ACKS: tuple[object, ...] = (
    *(None, True, 1.5, [], {}, 1 << 53, -(1 << 53), "x" * (ACK_MAX + 1), "\ud800"),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
NUMBERS = st.integers(-(1 << 63), (1 << 64) - 1) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
# Keys with a dollar are words for what JSON has none for: they have a test of their own.
NAMES = TEXTS.filter(lambda name: not name.startswith("$"))
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4)
)


def told(datagram: dict[str, Any], datagrams: Datagrams | None = None) -> dict[str, Any]:
    """What is told of a datagram that a gateway passes on."""
    frame = (datagrams or Datagrams()).frame(datagram)
    said: dict[str, Any] = json.loads(text_of(Datagrams().told(frame)))
    return said


def same(one: Any, other: Any) -> bool:
    """Say if two values are the same JSON, 1 and 1.0 and true apart."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@given(JSON)
def test_any_data_comes_back_as_it_was_said(data: Any) -> None:
    # An object whose one key is empty is what its value is: both are one unnamed field.
    while isinstance(data, dict) and list(data) == [""] and not isinstance(data[""], dict):
        data = data[""]
    assert same(told({"path": "/a", "data": data})["data"], data)


@given(st.text("$blobdutimesp", max_size=12), st.sampled_from([1, "x", None, {"a": 1}]))
def test_an_object_that_looks_like_a_word_for_something_else_is_refused_or_comes_back(
    name: str, value: Any
) -> None:
    data = {"within": {name: value}}
    try:
        assert same(told({"path": "/a", "data": data})["data"], data)
    except BadField:
        assert name in ("$blob", "$timestamp", "$double")


@pytest.mark.parametrize(
    "data", [{"$blob": "aGk="}, {"$timestamp": "2026-01-31T12:00:00.5Z"}, {"$double": "NaN"}]
)
def test_what_json_has_no_word_for_comes_back(data: dict[str, str]) -> None:
    assert told({"path": "/a", "data": data})["data"] == data
    assert told({"path": "/a", "data": {"x": data}})["data"] == {"x": data}
    assert told({"path": "/a", "data": [data]})["data"] == [data]


def test_a_message_names_its_path_and_where_an_answer_goes() -> None:
    said = told({"path": "/a/b", "data": 1, "reply": "/c", "request": True})
    assert said == {"id": "0.0", "path": "/a/b", "data": 1, "reply": "/c", "request": True}


def test_a_message_without_data_is_an_empty_one() -> None:
    assert told({"path": "/a"})["data"] == {}


def test_not_back_is_a_flag_of_the_frame() -> None:
    assert parse(Datagrams().frame({"path": "/a", "not_back": True})).flags == Flag.NOT_BACK


@pytest.mark.req("HUB-7")
def test_masked_is_a_flag_of_a_frame_with_a_reply() -> None:
    datagram = {"path": "/a", "reply": "/b", "masked": True}
    assert parse(Datagrams().frame(datagram)).flags == Flag.MASKED
    assert parse(Datagrams().frame(datagram | {"masked": False})).flags == Flag.NONE


def test_an_interest_is_a_subscription() -> None:
    datagram = {"interest": "/a", "subpaths": True, "group": "g", "policy": "latest"}
    frame = parse(Datagrams().frame(datagram | {"listen_only": True}))
    assert (frame.kind, frame.subject, frame.reply) == (Kind.SUBSCRIBE, b"a", b"g")
    options = Message.from_body(frame.body).to_dict()
    assert options == {"policy": "latest", "listen_only": True, "patterns": ["a.>"]}


def test_to_forget_takes_back_what_was_asked_for() -> None:
    frame = parse(Datagrams().frame({"forget": "/a", "subpaths": True, "group": "g"}))
    assert (frame.kind, frame.subject, frame.reply) == (Kind.UNSUBSCRIBE, b"a", b"g")
    assert Message.from_body(frame.body).to_dict() == {"patterns": ["a.>"]}
    assert parse(Datagrams().frame({"forget": "/a"})).body == b""


WRONG: list[tuple[dict[str, Any], type[UsageError]]] = [
    ({}, BadOption),
    ({"data": 1}, BadOption),
    ({"path": "/a", "interest": "/b"}, BadOption),
    ({"path": "/a", "dta": 1}, BadOption),
    ({"path": "/a", "\ud800": 1}, BadOption),
    ({"path": "/a", "x" * 100_000: 1}, BadOption),
    ({"path": 7}, BadSubject),
    ({"path": None}, BadSubject),
    ({"path": "/\ud800"}, BadSubject),
    ({"path": "/*"}, BadSubject),
    ({"path": "/a", "reply": "b"}, BadSubject),
    ({"path": "/a", "reply": None}, BadSubject),
    ({"path": "/a", "request": 1}, BadOption),
    ({"path": "/a", "request": "true"}, BadOption),
    ({"path": "/a", "not_back": None}, BadOption),
    ({"path": "/a", "masked": True}, BadOption),
    ({"path": "/a", "reply": "/b", "masked": 1}, BadOption),
    ({"path": "/a", "data": "\ud800"}, BadField),
    ({"path": "/a", "data": {"\udfff": 1}}, BadField),
    ({"path": "/a", "data": 1 << 64}, BadField),
    ({"path": "/a", "data": -(1 << 63) - 1}, BadField),
    ({"path": "/a", "data": math.inf}, BadField),
    ({"path": "/a", "data": {"$blob": 7}}, BadField),
    ({"path": "/a", "data": [0] * 70_000}, BadField),
    ({"path": "/a", "data": {str(number): 0 for number in range(5000)}}, BadField),
    ({"interest": ["/a"]}, BadSubject),
    ({"interest": "/a", "subpaths": 0}, BadOption),
    ({"interest": "/a", "group": 7}, BadOption),
    ({"interest": "/a", "group": "\ud800"}, BadOption),
    ({"interest": "/a", "group": "x" * 300}, BadSubject),
    ({"interest": "/a", "group": ""}, BadSubject),
    ({"interest": "/a", "policy": {}}, BadOption),
    ({"interest": "/a", "policy": "\ud800"}, BadOption),
    ({"interest": "/a", "listen_only": "yes"}, BadOption),
    ({"forget": "/a", "policy": "cut"}, BadOption),
    ({"ping": 7}, BadOption),
    ({"ping": "\ud800"}, BadOption),
    ({"ping": "x", "ack": 1}, BadOption),
    *(({"path": "/a", "ack": ack}, BadOption) for ack in NO_ACKS),
    ({"path": "/a", "ack": "a\nb"}, BadOption),
]


@pytest.mark.parametrize(("datagram", "error"), WRONG, ids=[repr(each)[:60] for each, _ in WRONG])
def test_a_datagram_that_says_nothing_is_refused_and_can_be_told_of(
    datagram: dict[str, Any], error: type[UsageError]
) -> None:
    datagrams = Datagrams()
    with pytest.raises(error) as refused:
        datagrams.frame(datagram)
    said = json.loads(text_of(error_datagram(refused.value, datagram)))
    assert said["error"]["name"] == error.__name__
    assert len(said["error"]["text"]) < 400
    assert not datagrams._awaited


def test_an_error_tells_the_ack_of_what_was_refused() -> None:
    wrong = {"path": "a", "ack": "mine"}
    assert error_datagram(BadSubject("no"), wrong)["ack"] == "mine"
    assert "ack" not in error_datagram(BadSubject("no"), {"ack": []})
    assert "ack" not in error_datagram(BadSubject("no"))


def test_a_message_over_the_limit_is_refused_before_it_is_a_frame() -> None:
    with pytest.raises(BadField, match="over the limit of 10"):
        Datagrams(10).frame({"path": "/a", "data": "x" * 20, "ack": 1})


def ok(of: bytes, sequence: int) -> bytes:
    frame = parse(of)
    made = bytearray(encode(Kind.OK, frame.subject, b"", frame.reply, Flag.ANSWER))
    made[8:12] = (7).to_bytes(4, "little")
    made[16:24] = sequence.to_bytes(8, "little")
    return bytes(made)


def refusal(of: bytes, flags: int = Flag.ANSWER) -> bytes:
    frame = parse(of)
    body = Message(number=4002, name="Reserved", text="no", kind=frame.kind)
    return encode(Kind.ERROR, frame.subject, body.encode(), frame.reply, flags)


def test_answers_are_known_by_what_the_asker_chose_in_its_order() -> None:
    datagrams = Datagrams()
    first = datagrams.frame({"path": "/a", "ack": "one"})
    second = datagrams.frame({"path": "/a", "ack": 2})
    other = datagrams.frame({"interest": "/a", "ack": "three"})
    assert datagrams.told(ok(other, 0)) == {"ok": "three"}
    assert datagrams.told(ok(first, 41)) == {"ok": "one", "id": "7.41"}
    error = {"number": 4002, "name": "Reserved", "text": "no"}
    assert datagrams.told(refusal(second)) == {"error": error, "path": "/a", "ack": 2}
    assert not datagrams._awaited


def test_an_error_that_nobody_asked_for_says_what_it_is_about() -> None:
    datagrams = Datagrams()
    asked = datagrams.frame({"path": "/a", "reply": "/b"})
    assert datagrams.told(refusal(asked, 0))["reply"] == "/b"
    wish = datagrams.frame({"interest": "/a", "group": "g.h"})
    assert datagrams.told(refusal(wish, 0))["group"] == "g.h"


def test_an_answer_to_nothing_is_told_as_such() -> None:
    frame = encode(Kind.MESSAGE, b"a")
    assert Datagrams().told(ok(frame, 1)) == {"ok": None, "id": "7.1"}


def test_what_else_a_gateway_says_is_told() -> None:
    datagrams = Datagrams()
    assert datagrams.told(encode(Kind.PONG, body=b"so far")) == {"pong": "so far"}
    gap = encode(Kind.GAP, body=Message(reason="slow", count=3).encode())
    assert datagrams.told(gap) == {"gap": {"reason": "slow", "count": 3}}
    goodbye = encode(Kind.GOODBYE, body=Message(reason="draining", text="bye").encode())
    assert datagrams.told(goodbye) == {"goodbye": {"reason": "draining", "text": "bye"}}
    welcome = Message(version=1, gateway="g", inbox="_INBOX.7.8", body_limit=9, ping_s=30.0)
    frame = encode(Kind.WELCOME, b"weather", welcome.encode(), b"me.1")
    assert datagrams.told(frame)["welcome"] == {
        "service": "weather",
        "name": "me.1",
        "version": 1,
        "gateway": "g",
        "inbox": "/_INBOX/7/8",
        "body_limit": 9,
        "ping_s": 30.0,
    }


@pytest.mark.parametrize("body", [b"", b"\x01", b"\xff" * 40, b"\x05\x00\x00\x00junk"])
def test_a_body_that_is_no_message_is_told_as_an_error_in_its_place(body: bytes) -> None:
    said = Datagrams().told(encode(Kind.MESSAGE, b"a.b", body, b"c"))
    assert said["error"]["name"] in ("BadMessage", "MessageTooBig")
    assert (said["path"], said["reply"]) == ("/a/b", "/c")
    assert "data" not in said
    json.loads(text_of(said))


@given(st.binary(max_size=60))
def test_whatever_is_in_a_body_something_is_told(body: bytes) -> None:
    said = json.loads(text_of(Datagrams().told(encode(Kind.MESSAGE, b"a", body))))
    assert ("data" in said) != ("error" in said)


def test_bare_bytes_are_a_blob() -> None:
    frame = encode(Kind.MESSAGE, b"a", b"hello", flags=Flag.BARE)
    assert Datagrams().told(frame)["data"] == {"$blob": "aGVsbG8="}


def test_a_text_holds_one_datagram_or_several() -> None:
    assert datagrams_in('{"ping":"a"}') == [{"ping": "a"}]
    assert datagrams_in(b'[{"ping":"a"},{"ping":"b"}]') == [{"ping": "a"}, {"ping": "b"}]
    assert datagrams_in("[]") == []


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "7", '"x"', "null", "[7]", "[[]]", "{", '{"a":1,}', "{'a':1}", "NaN"),
        *('{"path":"/a","path":"/b"}', '{"path":"/a","data":{"x":1,"x":2}}', '{"a":NaN}'),
        *('{"a":-Infinity}', "[" * 100_000, '{"a":' * 100_000, "9" * 5000, b"\xff", b"\xff\xfe{"),
        "[" + ",".join(["{}"] * (OBJECTS_MAX + 1)) + "]",
    ],
    ids=lambda text: repr(text)[:30],
)
def test_what_is_no_datagrams_is_refused(text: str | bytes) -> None:
    with pytest.raises(UsageError) as refused:
        datagrams_in(text)
    assert len(str(refused.value)) < 400


@given(TEXTS, st.integers(-(1 << 53) + 1, (1 << 53) - 1))
def test_an_ack_comes_back_as_it_was(text: str, number: int) -> None:
    for ack in (text, number):
        datagrams = Datagrams()
        try:
            frame = datagrams.frame({"path": "/a", "ack": ack})
        except BadOption:
            assert isinstance(ack, str)
            assert not ack.isprintable()
        else:
            assert json.loads(text_of(datagrams.told(ok(frame, 1))))["ok"] == ack


def test_a_frame_is_what_a_datagram_says() -> None:
    frame = parse(Datagrams().frame({"path": "/a", "data": {"x": 1}, "ack": 1}))
    body = Message(x=1).encode()
    assert frame == Frame(Kind.MESSAGE, Flag.ANSWER, b"a", b"", body)


def test_a_long_key_is_refused_without_comparing_it_with_others() -> None:
    seen: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename == difflib.__file__:
            seen.append(frame.f_code.co_name)

    def refuse(key: str) -> None:
        sys.setprofile(note)
        try:
            Datagrams(1 << 20).frame({"path": "/a", key: 1})
        except BadOption:
            return
        finally:
            sys.setprofile(None)
        raise AssertionError(f"{key[:8]} was taken")

    refuse("x" * KEY_MAX)
    assert seen
    seen.clear()
    refuse("x" * (KEY_MAX + 1))
    assert not seen
