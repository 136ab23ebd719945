import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import (
    BadField,
    BadMessage,
    BadOption,
    BadSubject,
    NotAllowed,
    Overloaded,
    Reserved,
    WeftError,
)
from weft.transports.bayeux.protocol import (
    CHANNELS_MAX,
    MESSAGES_MAX,
    HandshakeCredentials,
    PendingAnswers,
    Wait,
    advice,
    failed,
    greeting_of,
    messages_in,
    succeeded,
    text_of,
    told_gap,
    told_message,
    unknown_client,
    wait_of,
)
from weft.wire.frames import Flag, Frame, Kind, encode, parse
from weft.wire.message.message import Message

pytestmark = pytest.mark.req("TUN-24")

# As Faye has it: code, arguments, text, without a character that it does not know.
ERROR = re.compile(r"\d{3}:([A-Za-z0-9\-_!~()$@ /*.]*)(,[A-Za-z0-9\-_!~()$@ /*.]*)*:[^:]*")
TYPES = ("websocket", "long-polling")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=3), inner)
    ),
    max_leaves=10,
)


def ok(subject: bytes, sequence: int = 0) -> Frame:
    return Frame(Kind.OK, Flag.ANSWER, subject, b"", b"", sequence=sequence)


def error(subject: bytes, kind: Kind) -> Frame:
    facts = Message(number=4007, name="NotAllowed", text="no such right", kind=int(kind))
    return Frame(Kind.ERROR, Flag.ANSWER, subject, b"", facts.encode())


@given(JSON)
def test_what_is_published_is_what_is_told(data: Any) -> None:
    said = PendingAnswers[int]().frame({"channel": "/a/b", "data": data}, 1)
    frame = parse(said)
    assert (frame.kind, frame.subject, frame.flags) == (Kind.MESSAGE, b"a.b", Flag.ANSWER)
    told = told_message(said, frame._replace(origin=7, sequence=42))
    assert told == {"channel": "/a/b", "data": data, "id": "7.42"}
    assert json.loads(text_of(told)) == told


def test_a_publication_without_data_is_an_empty_message() -> None:
    said = PendingAnswers[int]().frame({"channel": "/a"}, 1)
    assert told_message(said, parse(said))["data"] == {}


def test_a_subscription_asks_to_lose_the_oldest_and_never_to_answer() -> None:
    message = {"channel": "/meta/subscribe", "subscription": "/a/**"}
    frame = parse(PendingAnswers[int]().frame(message, 1))
    assert (frame.kind, frame.subject, frame.flags) == (Kind.SUBSCRIBE, b"a.>", Flag.ANSWER)
    options = Message.from_body(frame.body).to_dict()
    assert options == {"policy": "drop_old", "listen_only": True}


def test_several_channels_are_one_frame() -> None:
    message = {"channel": "/meta/unsubscribe", "subscription": ["/a", "/b/*"]}
    frame = parse(PendingAnswers[int]().frame(message, 1))
    assert (frame.kind, frame.subject) == (Kind.UNSUBSCRIBE, b"a")
    assert Message.from_body(frame.body).to_dict() == {"patterns": ["b.*"]}


@pytest.mark.parametrize("wanted", [None, [], 7, {}, [None], ["/a", 7], ["/a"] * 257])
def test_a_subscription_names_channels(wanted: object) -> None:
    conversation = PendingAnswers[int]()
    with pytest.raises(BadSubject):
        conversation.frame({"channel": "/meta/subscribe", "subscription": wanted}, 1)
    assert len(conversation) == 0


def test_answers_find_whoever_asked_in_order() -> None:
    conversation = PendingAnswers[str]()
    for name in ("first", "second"):
        conversation.frame({"channel": "/a", "data": 1}, name)
    conversation.frame({"channel": "/meta/subscribe", "subscription": "/a"}, "subscribed")
    assert conversation.answered(ok(b"a", sequence=1)) == ("first", None)
    assert conversation.answered(ok(b"a")) == ("subscribed", None)
    found = conversation.answered(error(b"a", Kind.MESSAGE))
    assert found is not None
    assert found[0] == "second"
    assert isinstance(found[1], NotAllowed)
    assert len(conversation) == 0


def test_what_nobody_asked_for_is_nobodys_answer() -> None:
    conversation = PendingAnswers[str]()
    assert conversation.answered(ok(b"a")) is None
    conversation.frame({"channel": "/a"}, "x")
    assert conversation.answered(ok(b"a")) is None
    assert conversation.answered(ok(b"a", 1)._replace(flags=0)) is None
    assert conversation.take_all() == ["x"]
    assert len(conversation) == 0


@pytest.mark.parametrize("channel", ["/meta/connect", "/meta/x", "/meta"])
def test_the_protocols_channels_are_not_published_to(channel: str) -> None:
    with pytest.raises(Reserved):
        PendingAnswers[int]().frame({"channel": channel, "data": 1}, 1)


def test_too_deep_data_is_refused() -> None:
    deep: object = 1
    for _ in range(40):
        deep = [deep]
    with pytest.raises(BadField, match="nesting"):
        PendingAnswers[int]().frame({"channel": "/a", "data": deep}, 1)


def test_too_wide_data_is_refused() -> None:
    wide = {str(number): 1 for number in range(5000)}
    with pytest.raises(BadField, match="fields"):
        PendingAnswers[int]().frame({"channel": "/a", "data": wide}, 1)


def test_one_message_or_an_array_of_them() -> None:
    assert messages_in('{"channel": "/a"}') == [{"channel": "/a"}]
    assert messages_in(b'[{"channel": "/a"}, {"channel": "/b"}]') == [
        {"channel": "/a"},
        {"channel": "/b"},
    ]


@pytest.mark.parametrize(
    "text", ["", "x", "[", "7", '"a"', "null", "[]", "[7]", "{}", '[{"channel": 7}]', "\ufeff[]"]
)
def test_what_is_no_message_is_refused(text: str) -> None:
    with pytest.raises((BadField, BadOption)):
        messages_in(text)


def test_too_many_messages_are_refused() -> None:
    with pytest.raises(BadOption, match="1025 messages"):
        messages_in(json.dumps([{"channel": "/a"}] * (MESSAGES_MAX + 1)))


def test_a_nest_of_brackets_is_refused() -> None:
    with pytest.raises((BadField, BadOption)):
        messages_in("[" * 100_000)


@pytest.mark.parametrize("version", ["2.0", "0.9", 1, None, "x"])
def test_another_version_is_refused(version: object) -> None:
    message = {"channel": "/meta/handshake", "version": version}
    with pytest.raises(BadOption, match="version"):
        greeting_of(message, TYPES)


@pytest.mark.parametrize("offered", [[], ["flash"], "websocket", None, [[]]])
def test_nothing_in_common_is_refused(offered: object) -> None:
    message = {"channel": "/meta/handshake", "supportedConnectionTypes": offered}
    with pytest.raises(BadOption, match="websocket long-polling"):
        greeting_of(message, TYPES)


def test_a_handshake_shows_keys_and_asks_for_acknowledgements() -> None:
    shown = {"ack": True, "binary": {}, "authentication": {"key": "k", "ticket": "t"}}
    message = {"channel": "/meta/handshake", "ext": shown}
    assert greeting_of(message, TYPES) == HandshakeCredentials("k", "t", True, True)
    nothing = HandshakeCredentials("", "", False, False)
    assert greeting_of({"channel": "/meta/handshake"}, TYPES) == nothing
    odd = {"ack": 1, "binary": 1, "authentication": "k"}
    assert greeting_of({"channel": "/meta/handshake", "ext": odd}, TYPES) == nothing


@pytest.mark.parametrize("key", [7, None, ["k"], "schlüssel"])
def test_a_key_is_a_string(key: object) -> None:
    message = {"channel": "/meta/handshake", "ext": {"authentication": {"key": key}}}
    with pytest.raises(BadOption, match="key is a string"):
        greeting_of(message, TYPES)


@pytest.mark.parametrize(
    ("message", "wait"),
    [
        ({}, Wait(None, None)),
        ({"advice": {"timeout": 0}, "ext": {"ack": 3}}, Wait(0, 3)),
        ({"advice": {"timeout": True}, "ext": {"ack": False}}, Wait(None, None)),
        ({"advice": 7, "ext": []}, Wait(None, None)),
        ({"advice": {"timeout": 1e9}, "ext": {"ack": 1 << 60}}, Wait(None, None)),
    ],
)
def test_a_connect_says_how_long_and_what_it_has(message: dict[str, Any], wait: Wait) -> None:
    assert wait_of(message) == wait


def test_advice_is_in_milliseconds() -> None:
    told = advice("retry", 0.5, timeout=30.0)
    assert told == {"reconnect": "retry", "interval": 500, "timeout": 30_000}


def test_an_answer_has_the_channel_the_id_and_the_subscription() -> None:
    message = {"channel": "/meta/subscribe", "id": "7", "subscription": ["/a", "/b"], "data": 1}
    assert succeeded(message, x=1) == {
        "channel": "/meta/subscribe",
        "successful": True,
        "id": "7",
        "subscription": ["/a", "/b"],
        "x": 1,
    }


@pytest.mark.parametrize("odd", [None, True, [], {}, "x" * 129, "a\nb", 1 << 60, 1.5])
def test_an_id_that_could_not_come_back_as_it_was_is_left_out(odd: object) -> None:
    assert "id" not in succeeded({"channel": "/a", "id": odd})


def test_what_is_no_subscription_does_not_come_back() -> None:
    for odd in ({"a": "b"}, [["/a"]], ["/a"] * (CHANNELS_MAX + 1)):
        assert "subscription" not in succeeded({"channel": "/a", "subscription": odd})


@pytest.mark.parametrize(
    ("what", "code"),
    [
        (NotAllowed("no right 'subscribe' to \"a:b\", sorry"), "403"),
        (BadSubject("channel '/a/>' …"), "405"),
        (BadOption("x: y"), "400"),
        (Overloaded("full"), "503"),
        (unknown_client(), "402"),
    ],
)
def test_an_error_has_a_code_arguments_and_a_text(what: WeftError, code: str) -> None:
    told = failed({"channel": "/meta/subscribe", "subscription": ["/a:b", 7, "/c"]}, what, x=1)
    assert told["successful"] is False
    assert told["error"].startswith(f"{code}:/a b,/c:")
    assert ERROR.fullmatch(told["error"])
    assert told["ext"]["error"]["name"] == type(what).__name__
    assert told["ext"]["error"]["text"] == str(what)
    assert told["x"] == 1


@given(st.text(), st.text())
def test_every_error_can_be_taken_apart(channel: str, text: str) -> None:
    told = failed({"channel": channel}, BadOption(text))
    assert ERROR.fullmatch(told["error"])
    json.loads(text_of(told))


def test_a_message_that_could_pass_for_the_protocol_is_not_told() -> None:
    data = encode(Kind.MESSAGE, b"meta.connect", Message(a=1).encode())
    with pytest.raises(Reserved):
        told_message(data, parse(data))


def test_a_body_that_is_no_message_is_not_told() -> None:
    data = encode(Kind.MESSAGE, b"a", b"\xff\xff\xff\xff")
    with pytest.raises(BadMessage):
        told_message(data, parse(data))


def test_where_an_answer_is_awaited_is_told() -> None:
    data = encode(Kind.MESSAGE, b"a", Message(a=1).encode(), b"_INBOX.x.1")
    assert told_message(data, parse(data))["ext"] == {"reply": "/_INBOX/x/1"}


def test_a_gap_is_told_on_a_channel_of_its_own() -> None:
    data = encode(Kind.GAP, body=Message(reason="slow", count=3).encode())
    told = told_gap(parse(data))
    assert told == {"channel": "/meta/gap", "data": {"reason": "slow", "count": 3}}
