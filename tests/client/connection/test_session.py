import os
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.client.connection.events import (
    Answered,
    ConnectionEnded,
    Event,
    Late,
    MessagesLost,
    News,
    Parting,
    Pinged,
    RefusedRequest,
    Welcomed,
)
from weft.client.connection.session import (
    GREETING_LIMIT_BYTES,
    HEARTBEAT_S,
    ClientDescription,
    ClientSession,
    goodbye_frame,
    patterns_body,
    unsubscribe_frame,
)
from weft.client.status import Gap
from weft.errors import (
    BadFrame,
    BadGreeting,
    BadMessage,
    FrameTooBig,
    NoSuchService,
    NotKnown,
    Overloaded,
    ProtocolError,
    Reserved,
    Silent,
    SlowReader,
    UnexpectedFrame,
    WeftError,
)
from weft.wire import frames
from weft.wire.frames import Flag, Kind
from weft.wire.message.message import Field, Message
from weft.wire.nonces import Nonces

NONCES = Nonces(os.urandom)
INBOX = b"_INBOX.0badcafe.000000010123456789abcdef"


class Someone:
    """Whoever waits; only its being itself matters here."""

    def answered(self, frame: bytes) -> None:
        """Never here."""

    def failed(self, error: WeftError) -> None:
        """Never here."""

    def lost(self, error: WeftError) -> None:
        """Never here."""


def welcome(**facts: Any) -> bytes:
    told = {
        "version": 1,
        "gateway": "hub",
        "inbox": INBOX.decode(),
        "body_limit": 1000,
        "ping_s": 30.0,
        **facts,
    }
    return frames.encode(Kind.WELCOME, b"default", Message.from_dict(told).encode(), b"you.1")


def error(number: int, asked: tuple[int, bytes, bytes], flags: int = 0) -> bytes:
    kind, subject, reply = asked
    body = Message(number=number, name="x", text="because", kind=kind).encode()
    return frames.encode(Kind.ERROR, subject, body, reply, flags)


def ok(subject: bytes, reply: bytes = b"", sequence: int = 0) -> bytes:
    frame = bytearray(frames.encode(Kind.OK, subject, b"", reply, Flag.ANSWER))
    frame[16:24] = sequence.to_bytes(8, "little")
    return bytes(frame)


def fresh(waiting_max: int = 100) -> ClientSession:
    session = ClientSession(ClientDescription("default", "me.1", "", "test"), waiting_max, NONCES)
    session.begin(0.0)
    return session


def opened(waiting_max: int = 100, **facts: Any) -> ClientSession:
    session = fresh(waiting_max)
    assert session.receive(welcome(**facts), 0.0) == [Welcomed()]
    return session


def only(events: list[Event]) -> Event:
    assert len(events) == 1
    return events[0]


def why(events: list[Event]) -> WeftError:
    last = events[-1]
    assert isinstance(last, ConnectionEnded)
    return last.error


# Greeting


def test_a_connection_begins_with_who_one_is() -> None:
    frame = frames.parse(
        ClientSession(ClientDescription("weather", "me.1", "", "test"), 1, NONCES).begin(0.0)
    )
    assert (frame.kind, frame.subject, frame.reply) == (Kind.CONNECT, b"weather", b"me.1")
    assert Message.from_body(frame.body).to_dict() == {"version": 1, "client": "test"}


@pytest.mark.req("HUB-1")
def test_a_client_tells_where_it_can_be_reached() -> None:
    frame = frames.parse(
        ClientSession(ClientDescription("weather", "me.1", "host:1", "test"), 1, NONCES).begin(0.0)
    )
    assert Message.from_body(frame.body)["address"] == "host:1"


def test_a_welcome_opens_the_session_and_says_what_holds() -> None:
    session = opened()
    assert session.is_open
    assert (session.name, session.gateway, session.inbox) == ("you.1", "hub", INBOX)
    assert (session.body_limit_bytes, session.ping_s) == (1000, HEARTBEAT_S)


def test_a_refusal_ends_the_session_before_it_began() -> None:
    session = fresh()
    refused = why(session.receive(error(4004, (1, b"default", b"")), 0.0))
    assert isinstance(refused, NoSuchService)
    assert str(refused) == "because"
    assert not session.is_open


@pytest.mark.parametrize(
    "first",
    [
        frames.encode(Kind.PONG),
        frames.encode(Kind.WELCOME),
        welcome(version=2),
        welcome(version="1"),
        welcome(inbox=""),
        welcome(ping_s=0.0),
        welcome(ping_s=float("nan")),
        welcome(ping_s=float("inf")),
        welcome(body_limit=0),
        welcome(body_limit=1 << 31),
    ],
)
def test_a_welcome_that_cannot_be_is_refused(first: bytes) -> None:
    session = fresh()
    assert isinstance(why(session.receive(first, 0.0)), BadGreeting)
    assert not session.is_open


def test_a_greeting_may_not_be_long() -> None:
    size = (GREETING_LIMIT_BYTES + 32 + 511).to_bytes(4, "little")
    assert isinstance(why(fresh().receive(size, 0.0)), FrameTooBig)


@pytest.mark.parametrize(("size", "fits"), [(1000, True), (1001, False)])
def test_the_limit_on_bodies_is_the_gateways(size: int, fits: bool) -> None:
    message = frames.encode(Kind.MESSAGE, b"a", b"x" * size)
    events = fresh().receive(welcome() + message, 0.0)
    assert events[0] == Welcomed()
    assert (events[1] == [message]) is fits


def test_a_large_frame_may_follow_a_welcome_in_pieces() -> None:
    message = frames.encode(Kind.MESSAGE, b"a", b"x" * 100_000)
    data = welcome(body_limit=100_000) + message
    session = fresh()
    events = [
        event
        for at in range(0, len(data), 999)
        for event in session.receive(data[at : at + 999], 0.0)
    ]
    assert events == [Welcomed(), [message]]


# Messages


def test_messages_of_one_subject_are_an_event_together() -> None:
    message = frames.encode(Kind.MESSAGE, b"a.b", b"hello", b"r")
    other = frames.encode(Kind.MESSAGE, b"a.c")
    assert opened().receive(message * 3 + other + message, 0.0) == [
        [message] * 3,
        [other],
        [message],
    ]


@pytest.mark.parametrize("subject", [b"_LOCAL.a", b"_WEFT.event.gap", b"_INBOX.elsewhere", b""])
def test_only_what_is_in_the_own_inbox_is_an_answer(subject: bytes) -> None:
    message = frames.encode(Kind.MESSAGE, subject)
    assert opened().receive(message, 0.0) == [[message]]


def test_messages_of_a_channel_come_together_as_any_others() -> None:
    message = frames.encode(Kind.MESSAGE, b"_CHANNEL.0123456789abcdef0123456789abcdef.a", b"hello")
    assert opened().receive(message * 3, 0.0) == [[message] * 3]


def test_a_subject_that_only_goes_on_in_the_body_as_the_inbox_does_is_no_answer() -> None:
    message = frames.encode(Kind.MESSAGE, INBOX[:6], INBOX[6:] + b".1")
    assert opened().receive(message * 2, 0.0) == [[message]] * 2


def test_an_answer_is_for_whoever_asked() -> None:
    session, someone, other = opened(), Someone(), Someone()
    first, second = session.request(someone), session.request(other)
    assert first.startswith(INBOX + b".")
    answer = frames.encode(Kind.MESSAGE, second)
    assert session.receive(answer, 0.0) == [Answered(other, answer)]
    answer = frames.encode(Kind.MESSAGE, first)
    assert session.receive(answer * 2, 0.0) == [Answered(someone, answer)] * 2


def test_what_the_gateway_is_asked_nobody_else_answers() -> None:
    session, someone = opened(), Someone()
    reply = session.request(someone, of_gateway=True)
    assert session.receive(frames.encode(Kind.MESSAGE, reply), 0.0) == [Late()]
    answer = frames.encode(Kind.MESSAGE, reply, flags=Flag.FROM_GATEWAY)
    assert session.receive(answer, 0.0) == [Answered(someone, answer)]


def test_reply_subjects_are_not_what_a_counter_would_give() -> None:
    session = opened()
    replies = [
        session.request(Someone(), of_gateway=number % 2 == 0).rpartition(b".")[2]
        for number in range(100)
    ]
    assert len({reply[:8] for reply in replies}) == len(replies)
    assert {len(reply) for reply in replies} == {16}


def test_an_answer_that_nobody_awaits_is_late() -> None:
    session, someone = opened(), Someone()
    reply = session.request(someone)
    session.forget(someone)
    assert session.receive(frames.encode(Kind.MESSAGE, reply), 0.0) == [Late()]


@pytest.mark.req("HUB-17")
def test_a_request_may_be_refused_at_once() -> None:
    session, someone = opened(), Someone()
    reply = session.request(someone)
    event = only(session.receive(error(4001, (5, b"quotes", reply), Flag.REQUEST), 0.0))
    assert isinstance(event, RefusedRequest)
    assert event.waiter is someone
    assert isinstance(event.error, NotKnown)


# Answers


@pytest.mark.req("HUB-3")
def test_an_ok_with_a_number_is_for_a_message_and_one_without_is_not() -> None:
    session, publisher, subscriber = opened(), Someone(), Someone()
    session.question(publisher, b"a", b"")
    session.subscribe(subscriber, [b"a"], b"", b"")
    assert session.receive(ok(b"a"), 0.0) == [Answered(subscriber, ok(b"a"))]
    assert session.receive(ok(b"a", sequence=7), 0.0) == [Answered(publisher, ok(b"a", sequence=7))]
    assert session.awaited == 0


@pytest.mark.req("HUB-3")
def test_a_refusal_says_which_kind_of_frame_it_is_for() -> None:
    session, publisher, subscriber = opened(), Someone(), Someone()
    session.question(publisher, b"a", b"")
    session.subscribe(subscriber, [b"a"], b"", b"")
    event = only(session.receive(error(4002, (5, b"a", b""), Flag.ANSWER), 0.0))
    assert isinstance(event, RefusedRequest)
    assert event.waiter is publisher
    assert isinstance(event.error, Reserved)
    event = only(session.receive(error(4005, (3, b"a", b""), Flag.ANSWER), 0.0))
    assert isinstance(event, RefusedRequest)
    assert event.waiter is subscriber


def test_an_answer_to_nothing_is_passed_over() -> None:
    stray = ok(b"a") + error(4002, (5, b"a", b""), Flag.ANSWER) + frames.encode(Kind.PONG)
    assert opened().receive(stray, 0.0) == []


def test_a_refusal_that_nobody_awaits_is_news() -> None:
    event = only(opened().receive(error(3005, (5, b"a.b", b"")), 0.0))
    assert isinstance(event, News)
    assert event.subject == "a.b"
    assert isinstance(event.error, SlowReader)


def test_a_pong_is_for_whoever_pinged() -> None:
    session, someone, other = opened(), Someone(), Someone()
    first = frames.parse(session.ping(someone))
    session.ping(other)
    pong = frames.encode(Kind.PONG, body=first.body)
    assert first.kind == Kind.PING
    assert session.receive(pong, 0.0) == [Answered(someone, pong)]
    assert session.awaited == 1


def test_no_more_answers_are_awaited_than_may_be() -> None:
    session = opened(waiting_max=1)
    session.request(Someone())
    with pytest.raises(Overloaded):
        session.ping(Someone())


def test_the_end_gives_back_whoever_waits() -> None:
    session, someone, other = opened(), Someone(), Someone()
    session.request(someone)
    session.question(other, b"a", b"")
    assert session.end() == [someone, other]
    assert not session.is_open
    assert session.receive(frames.encode(Kind.MESSAGE, b"a"), 0.0) == []


# Everything else that a gateway says


def test_a_ping_is_answered_with_its_body() -> None:
    event = only(opened().receive(frames.encode(Kind.PING, body=b"12"), 0.0))
    assert event == Pinged(frames.encode(Kind.PONG, body=b"12"))


def test_a_gap_says_whose_why_and_how_many() -> None:
    body = Message(Field.uint64("count", 7), reason="slow").encode()
    frame = bytearray(frames.encode(Kind.GAP, body=body))
    frame[8] = 5
    assert opened().receive(bytes(frame), 0.0) == [MessagesLost(Gap("slow", 7, 5))]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (Message(reason="draining", text="soon").encode(), Parting("draining", "soon")),
        (b"", Parting("", "")),
        (Message(elsewhere=["a:1", "b:2"]).encode(), Parting("", "", ("a:1", "b:2"))),
        (Message(elsewhere="a:1").encode(), Parting("", "")),
        (Message(elsewhere=7).encode(), Parting("", "")),
    ],
)
def test_a_goodbye_says_why(body: bytes, said: Parting) -> None:
    assert opened().receive(frames.encode(Kind.GOODBYE, body=body), 0.0) == [said]


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (b"\x05\x00\x00\x00", BadFrame),
        (frames.encode(Kind.CONNECT), UnexpectedFrame),
        (frames.encode(Kind.WELCOME), UnexpectedFrame),
        (frames.encode(Kind.SUBSCRIBE, b"a"), UnexpectedFrame),
        (frames.encode(99), UnexpectedFrame),
        (frames.encode(Kind.PING, body=b"x" * 65), ProtocolError),
        (frames.encode(Kind.GAP), BadMessage),
        (frames.encode(Kind.GAP, body=b"junk"), BadMessage),
        (frames.encode(Kind.ERROR, b"a"), BadMessage),
        (frames.encode(Kind.GOODBYE, body=b"junk"), BadMessage),
    ],
)
def test_what_a_gateway_never_says_ends_the_session_after_what_came_before(
    bad: bytes, expected: type[WeftError]
) -> None:
    session = opened()
    message = frames.encode(Kind.MESSAGE, b"a")
    events = session.receive(message + bad, 0.0)
    assert events[0] == [message]
    assert isinstance(why(events), expected)
    assert session.receive(message, 0.0) == []


# Silence


def test_silence_is_met_with_a_ping_and_then_given_up() -> None:
    session = opened()
    assert session.keep_alive(4.4) == b""
    assert session.keep_alive_at() == HEARTBEAT_S
    assert session.keep_alive(4.5) == frames.encode(Kind.PING)
    assert session.keep_alive_at() == 2 * HEARTBEAT_S
    assert session.keep_alive(8.9) == b""
    with pytest.raises(Silent, match=r"9\.0 s"):
        session.keep_alive(9.0)


def test_a_ping_that_waits_behind_what_is_being_sent_has_its_time_again() -> None:
    session = opened()
    session.sending(4.0)
    assert session.keep_alive(4.5) == frames.encode(Kind.PING)
    session.sending(8.5)
    assert session.keep_alive(12.9) == b""
    with pytest.raises(Silent, match=r"13\.0 s"):
        session.keep_alive(13.0)


def test_a_gateway_that_is_less_patient_is_pinged_as_often_as_it_says() -> None:
    session = opened(ping_s=2.0)
    assert session.keep_alive_at() == 2.0


def test_a_program_that_stood_still_pings_before_it_gives_up() -> None:
    session = opened()
    assert session.keep_alive(1000.0) == frames.encode(Kind.PING)
    assert session.keep_alive(1004.0) == b""
    with pytest.raises(Silent):
        session.keep_alive(1004.5)


def test_a_program_that_stood_still_after_a_ping_pings_again_before_it_gives_up() -> None:
    """The answer may have come: it was not read yet."""
    session = opened()
    assert session.keep_alive(4.5) == frames.encode(Kind.PING)
    assert session.keep_alive(1000.0) == frames.encode(Kind.PING)
    with pytest.raises(Silent):
        session.keep_alive(1004.5)


def test_any_word_ends_the_silence() -> None:
    session = opened()
    session.keep_alive(4.5)
    session.receive(frames.encode(Kind.PONG), 8.0)
    assert session.keep_alive(12.4) == b""
    assert session.keep_alive(12.5) != b""


def test_silence_does_not_count_while_one_does_not_listen() -> None:
    session = opened()
    session.keep_alive(4.5)
    session.not_listening(8.0)
    assert session.keep_alive(12.4) == b""


# Frames


def test_patterns_are_asked_for_in_one_frame() -> None:
    body = patterns_body([b"b", b"c"], {"policy": "latest"})
    frame = frames.parse(opened().subscribe(Someone(), [b"a", b"b", b"c"], b"g", body))
    assert (frame.kind, frame.flags, frame.subject, frame.reply) == (3, Flag.ANSWER, b"a", b"g")
    assert Message.from_body(frame.body).to_dict() == {"policy": "latest", "patterns": ["b", "c"]}


def test_patterns_are_taken_back_in_one_frame() -> None:
    frame = frames.parse(unsubscribe_frame([b"a", b"b"], b"g"))
    assert (frame.kind, frame.subject, frame.reply) == (Kind.UNSUBSCRIBE, b"a", b"g")
    assert Message.from_body(frame.body).to_dict() == {"patterns": ["b"]}


def test_one_plain_pattern_needs_no_body() -> None:
    assert frames.parse(unsubscribe_frame([b"a"], b"")).body == b""


def test_a_goodbye_has_a_reason() -> None:
    frame = frames.parse(goodbye_frame())
    assert frame.kind == Kind.GOODBYE
    assert Message.from_body(frame.body)["reason"] == "closed"


# Any split, any order

SAID = [
    frames.encode(Kind.MESSAGE, b"a.b", b"hello"),
    frames.encode(Kind.MESSAGE, b"_LOCAL.a", b"hello"),
    frames.encode(Kind.MESSAGE, INBOX + b".1", b"late"),
    frames.encode(Kind.PING, body=b"1"),
    frames.encode(Kind.PONG, body=b"1"),
    frames.encode(Kind.GAP, body=Message(Field.uint64("count", 7), reason="slow").encode()),
    frames.encode(Kind.GOODBYE, body=Message(reason="draining").encode()),
    ok(b"a"),
    frames.encode(99),
    b"\x01\x00\x00\x00",
]


def shown(events: list[Event]) -> list[object]:
    """Errors compare by identity; what they say is what matters. Messages may come together."""
    return [
        repr(each) for event in events for each in (event if isinstance(event, list) else [event])
    ]


@given(said=st.lists(st.sampled_from(SAID)), cuts=st.lists(st.integers(0, 2000)))
def test_any_split_gives_the_same_events(said: list[bytes], cuts: list[int]) -> None:
    data = welcome() + b"".join(said)
    whole = fresh().receive(data, 0.0)
    session = fresh()
    pieces: list[Event] = []
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    for start, end in pairwise(edges):
        pieces += session.receive(data[start:end], 0.0)
    assert shown(pieces) == shown(whole)


@given(data=st.binary(max_size=300))
def test_any_bytes_at_all_give_events_and_no_exception(data: bytes) -> None:
    fresh().receive(data, 0.0)
    opened().receive(data, 0.0)


@given(st.lists(st.sampled_from(["ask", "publish", "ping", "answer", "forget", "end"])))
def test_in_any_order_everybody_is_told_once_or_forgotten(steps: list[str]) -> None:
    session = opened(waiting_max=1000)
    waiting: dict[Someone, bytes] = {}
    for sequence, step in enumerate(steps, 1):
        someone = Someone()
        if step == "ask":
            waiting[someone] = frames.encode(Kind.MESSAGE, session.request(someone))
        elif step == "publish":
            # A name of its own: whoever has given up keeps its place among its namesakes.
            name = b"n%d" % sequence
            session.question(someone, name, b"")
            waiting[someone] = ok(name, sequence=sequence)
        elif step == "ping":
            ping = frames.parse(session.ping(someone))
            waiting[someone] = frames.encode(Kind.PONG, body=ping.body)
        elif step == "end":
            assert set(session.end()) == set(waiting)
            waiting.clear()
            session.begin(0.0)
            session.receive(welcome(), 0.0)
        elif waiting:
            asked, answer = waiting.popitem()
            if step == "answer":
                assert session.receive(answer, 0.0) == [Answered(asked, answer)]
            session.forget(asked)
    assert session.awaited == len(waiting)
