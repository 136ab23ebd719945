"""Sending somebody more than it can read, so that it would be cut in the attacker's place."""

from tests.attacks.siege import Siege
from tests.attacks.stranger import CONNECT, error_name, fields, message, request, subscribe

from weft.wire.frames import Kind

# Together more than what may wait for one connection.
LARGE = bytes(100_000)
COUNT = 900


def test_requests_cannot_get_whoever_serves_them_cut(siege: Siege) -> None:
    server = siege.stranger(CONNECT + subscribe(b"served.here"))
    server.hear_until_pong()
    attacker = siege.stranger()
    inbox = attacker.inbox()
    attacker.send(*(request(b"served.here", inbox + b".%d" % n, LARGE) for n in range(COUNT)))
    refused = attacker.hear_errors()
    assert set(refused) == {"Overloaded"}
    siege.bystander.talk()
    # It has not read a word so far. What it was given is all there, and it can go on.
    given = [frame for frame in server.hear_until_pong() if frame.kind == Kind.MESSAGE]
    assert len(given) == COUNT - len(refused)
    server.send(message(given[0].reply, b"answer"))
    assert attacker.hear(Kind.MESSAGE).body == b"answer"
    siege.await_counts(refused_Overloaded=len(refused))


def test_answers_cannot_get_whoever_asked_cut(siege: Siege) -> None:
    attacker = siege.stranger(CONNECT + subscribe(b"trap"))
    attacker.hear_until_pong()
    asker = siege.stranger()
    inbox = asker.inbox()
    asker.send(request(b"trap", inbox + b".1"))
    reply = attacker.hear(Kind.MESSAGE).reply
    attacker.send(message(reply, b"answer"), *(message(reply, LARGE) for _ in range(COUNT)))
    attacker.hear_until_pong()
    siege.bystander.talk()
    heard = asker.hear_until_pong()
    assert next(frame.body for frame in heard if frame.kind == Kind.MESSAGE) == b"answer"
    came = sum(frame.kind == Kind.MESSAGE for frame in heard)
    missed = sum(fields(frame)["count"] for frame in heard if frame.kind == Kind.GAP)
    assert missed > 0
    assert came + missed == 1 + COUNT
    assert not [error_name(frame) for frame in heard if frame.kind == Kind.ERROR]
    siege.await_counts()
