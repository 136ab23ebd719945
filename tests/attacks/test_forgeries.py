"""Speaking in another's name: reserved subjects, other people's inboxes, answers to others."""

import pytest
from tests.attacks.gateway_process import eventually
from tests.attacks.siege import Siege
from tests.attacks.stranger import (
    CONNECT,
    Stranger,
    connect,
    error_name,
    fields,
    message,
    request,
    subscribe,
)

from weft.wire.frames import Flag, Frame, Kind, encode
from weft.wire.message.message import Message

REQUESTS = 1000
SETTINGS = {"limits.requests": REQUESTS}
EVENTS = subscribe(b"_WEFT.event.connected") + subscribe(b"_WEFT.event.>")


def messages(frames: list[Frame]) -> list[bytes]:
    return [frame.body for frame in frames if frame.kind == Kind.MESSAGE]


def unanswered(stranger: Stranger, inbox: bytes, name: str) -> int:
    """How many requests a connection has yet to answer, as the gateway tells it."""
    body = Message(name=name).encode()
    asked = encode(Kind.MESSAGE, b"_WEFT.ask.connections", body, inbox + b".ask", Flag.REQUEST)
    stranger.send(asked)
    answers = iter(lambda: stranger.hear(Kind.MESSAGE), None)
    answer = next(frame for frame in answers if frame.subject == inbox + b".ask")
    (connection,) = fields(answer)["connections"]
    return int(connection["unanswered"])


@pytest.mark.parametrize(
    "subject", [b"_WEFT.event.connected", b"_WEFT.ask.status", b"_WEFT", b"_SYSTEM.halt", b"_"]
)
def test_nobody_speaks_for_the_system(siege: Siege, subject: bytes) -> None:
    witness = siege.stranger(CONNECT + EVENTS)
    witness.hear_until_pong()
    forger = siege.stranger(CONNECT + message(subject, b"forged"))
    assert forger.hear_errors() == ["Reserved"]
    assert b"forged" not in messages(witness.hear_until_pong())
    siege.await_counts(refused_Reserved=1)


def test_a_question_that_the_gateway_does_not_answer_is_not_known(siege: Siege) -> None:
    stranger = siege.stranger()
    inbox = stranger.inbox()
    for question in (b"secrets", b"status.all", b"__class__", b"x" * 200):
        stranger.send(request(b"_WEFT.ask." + question[:127], inbox + b".1"))
    assert set(stranger.hear_errors()) <= {"NotKnown", "BadSubject"}


REPLIES = {
    "the inbox of another": (b"{other}.1", "NotYours"),
    "an inbox of nobody": (b"_INBOX.00000000.000000000000000000000000.1", "NotYours"),
    "its own inbox without a name": (b"{own}", "NotYours"),
    "the gateway's questions": (b"_WEFT.ask.status", "NotYours"),
    "the gateway's events": (b"_WEFT.event.connected", "NotYours"),
    "a wildcard": (b"a.*", "BadSubject"),
    "an empty element": (b"a..b", "BadSubject"),
    "not UTF-8": (b"\xff", "BadSubject"),
}


@pytest.mark.parametrize(("reply", "error"), REPLIES.values(), ids=REPLIES.keys())
@pytest.mark.parametrize("flags", [Flag.NONE, Flag.REQUEST], ids=["message", "request"])
def test_a_reply_that_its_sender_could_not_use_is_refused(
    siege: Siege, reply: bytes, error: str, flags: Flag
) -> None:
    victim = siege.stranger(CONNECT + subscribe(b"served.here"))
    forger = siege.stranger()
    names = {b"{other}": victim.inbox(), b"{own}": forger.inbox()}
    for mark, name in names.items():
        reply = reply.replace(mark, name)
    forger.send(message(b"served.here", b"?", reply, flags))
    assert forger.hear_errors() == [error]
    assert messages(victim.hear_until_pong()) == []
    siege.await_counts(**{f"refused_{error}": 1})


@pytest.mark.parametrize("reply", [b"", b"some.subject", b"_LOCAL.here"])
def test_a_request_must_be_answered_to_its_sender(siege: Siege, reply: bytes) -> None:
    server = siege.stranger(CONNECT + subscribe(b"served.here"))
    server.hear_until_pong()
    stranger = siege.stranger(CONNECT + request(b"served.here", reply))
    assert stranger.hear_errors() == ["UsageError"]
    assert messages(server.hear_until_pong()) == []
    siege.await_counts(refused_UsageError=1)


def test_only_the_one_who_was_asked_can_answer(siege: Siege) -> None:
    server = siege.stranger(CONNECT + subscribe(b"served.here"))
    server.hear_until_pong()
    asker = siege.stranger()
    reply = asker.inbox() + b".1"
    asker.send(request(b"served.here", reply))
    assert server.hear(Kind.MESSAGE).reply == reply
    # The forger has learned the reply subject, which nobody but the server should have told it.
    forger = siege.stranger(CONNECT + message(reply, b"forged") * 3 + subscribe(reply))
    assert forger.hear_errors() == ["NotYours"] * 2
    server.send(message(reply, b"true"))
    assert asker.hear(Kind.MESSAGE).body == b"true"
    siege.await_counts(refused_NotYours=4)


def test_requests_without_answers_are_bounded_and_end_with_whoever_has_them(siege: Siege) -> None:
    server = siege.stranger(connect(name=b"never.answers") + subscribe(b"served.here"))
    server.hear_until_pong()
    asker = siege.stranger()
    inbox = asker.inbox()
    asker.send(*(request(b"served.here", inbox + b".%d" % n) for n in range(REQUESTS + 1)))
    assert asker.hear_errors() == ["TooMany"]
    siege.bystander.talk()
    assert len(messages(server.hear_until_pong())) == REQUESTS
    server.socket.close()
    gone = [error_name(asker.hear(Kind.ERROR)) for _ in range(REQUESTS)]
    assert gone == ["ResponderGone"] * REQUESTS
    asker.send(request(b"served.here", inbox + b".0"))
    assert asker.hear_errors() == ["NotKnown"]
    siege.await_counts(refused_TooMany=1, refused_NotKnown=1)


@pytest.mark.req("HUB-20")
def test_a_requester_that_leaves_is_forgotten_by_whoever_served_it(siege: Siege) -> None:
    server = siege.stranger(connect(name=b"in.no.hurry") + subscribe(b"served.here"))
    inbox = server.inbox()
    with Stranger(siege.port) as asker:
        asked = asker.inbox()
        asker.send(*(request(b"served.here", asked + b".%d" % n) for n in range(100)))
        assert asker.hear_errors() == []
    requests = [server.hear(Kind.MESSAGE) for _ in range(100)]
    eventually(lambda: unanswered(server, inbox, "in.no.hurry") == 0, "it is still busy")
    # To answer somebody who is gone is no mistake.
    server.send(*(message(frame.reply, b"late", flags=Flag.ANSWER) for frame in requests))
    assert [frame.kind for frame in server.hear_until_pong()] == [Kind.OK] * 100
    siege.await_counts()


def test_a_second_request_with_the_same_reply_is_refused(siege: Siege) -> None:
    server = siege.stranger(CONNECT + subscribe(b"served.here"))
    server.hear_until_pong()
    asker = siege.stranger()
    reply = asker.inbox() + b".1"
    asker.send(request(b"served.here", reply) * 2)
    assert asker.hear_errors() == ["UsageError"]
    assert len(messages(server.hear_until_pong())) == 1
    siege.await_counts(refused_UsageError=1)


def test_requests_that_nobody_serves_are_each_answered_at_once(siege: Siege) -> None:
    asker = siege.stranger()
    inbox = asker.inbox()
    for _ in range(10):
        asker.send(*(request(b"nobody.%d" % n, inbox + b".%d" % n) for n in range(500)))
        assert asker.hear_errors() == ["NotKnown"] * 500
    siege.await_counts(refused_NotKnown=5000)
