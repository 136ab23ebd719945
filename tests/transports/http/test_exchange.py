import json

import pytest

from weft.errors import (
    BadKey,
    BadSubject,
    Draining,
    FrameTooBig,
    InternalError,
    JournalFailed,
    NoSuchService,
    NotAllowed,
    NotKnown,
    Overloaded,
    ResponderGone,
    TimedOut,
    TooMany,
    TooSlow,
    WeftError,
)
from weft.transports.http.exchange import JSON, Exchange, Request, status_of

REQUEST = Request("GET", "weather", "echo", (), {}, {})


class Noted:
    """A connection that notes what goes out by it."""

    def __init__(self) -> None:
        self.sent: list[object] = []
        self.has_room = True

    def respond(self, status: int, headers: list[tuple[str, str]], body: bytes | None) -> None:
        self.sent.append((status, dict(headers), body))

    def piece(self, data: bytes) -> None:
        self.sent.append(data)

    def complete(self) -> None:
        self.sent.append("complete")

    def close(self) -> None:
        self.sent.append("close")


def test_a_request_has_one_answer() -> None:
    connection = Noted()
    exchange = Exchange(REQUEST, connection, [("X-Extra", "yes")])
    exchange.answer(200, b"one", JSON, (("X-More", "too"),))
    exchange.answer(500, b"two")
    exchange.begin("text/plain")
    exchange.send(b"three")
    exchange.end()
    exchange.abort()
    ((status, headers, body),) = connection.sent  # type: ignore[misc]  # only one
    assert (status, body) == (200, b"one")  # type: ignore[has-type]
    assert headers == {  # type: ignore[has-type]
        "Content-Type": JSON,
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "X-Extra": "yes",
        "X-More": "too",
    }
    assert exchange.is_over
    assert not exchange.has_room


def test_an_answer_that_lasts_begins_goes_on_and_ends_once() -> None:
    connection = Noted()
    exchange = Exchange(REQUEST, connection)
    exchange.send(b"too early")
    exchange.end()
    exchange.begin("text/plain")
    exchange.begin("text/plain")
    exchange.answer(500)
    assert exchange.has_room
    exchange.send(b"one")
    exchange.send(b"")
    exchange.end()
    exchange.end()
    exchange.send(b"too late")
    assert connection.sent[1:] == [b"one", "complete"]


def test_an_exchange_can_be_broken_off() -> None:
    connection = Noted()
    exchange = Exchange(REQUEST, connection)
    exchange.abort()
    exchange.abort()
    exchange.answer(200)
    assert connection.sent == ["close"]


def test_a_refusal_says_what_it_is() -> None:
    connection = Noted()
    Exchange(REQUEST, connection).refuse(BadKey("no such key"))
    ((status, headers, body),) = connection.sent  # type: ignore[misc]  # only one
    assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")  # type: ignore[has-type]
    error = {"number": 4006, "name": "BadKey", "text": "no such key"}
    assert json.loads(body) == {"error": error}  # type: ignore[has-type]


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        *((BadSubject, 400), (BadKey, 401), (NotAllowed, 403), (NotKnown, 404), (TooSlow, 408)),
        *((NoSuchService, 404), (FrameTooBig, 413), (TooMany, 429), (InternalError, 500)),
        *((ResponderGone, 502), (Draining, 503), (JournalFailed, 503), (Overloaded, 503)),
        (TimedOut, 504),
    ],
)
def test_an_error_has_its_status(kind: type[WeftError], status: int) -> None:
    assert status_of(kind("")) == status
