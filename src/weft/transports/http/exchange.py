"""One HTTP request and its answer: whole, or in pieces for as long as it lasts."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol

from weft.errors import (
    BadKey,
    Draining,
    FrameTooBig,
    InternalError,
    JournalFailed,
    NoSuchService,
    NotAllowed,
    NotKnown,
    NotYours,
    Overloaded,
    RequestFailed,
    ResponderGone,
    TimedOut,
    TooMany,
    TooSlow,
    WeftError,
)
from weft.transports.http.origins import UnknownHost

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"

# The first that fits; anything else is the fault of whoever asked.
_STATUS: tuple[tuple[type[WeftError], int], ...] = (
    (BadKey, 401),
    (NotAllowed, 403),
    (NotYours, 403),
    (NotKnown, 404),
    (NoSuchService, 404),
    (TooSlow, 408),
    (UnknownHost, 421),
    (FrameTooBig, 413),
    (TooMany, 429),
    (InternalError, 500),
    (RequestFailed, 500),
    (ResponderGone, 502),
    (Draining, 503),
    (JournalFailed, 503),
    (Overloaded, 503),
    (TimedOut, 504),
)


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked: `path` is the elements behind the door's name, decoded."""

    method: str
    service: str
    door: str
    path: tuple[str, ...]
    query: Mapping[str, str]
    # By lower-case name; of one that occurs twice, both, with a comma between.
    headers: Mapping[str, str]
    body: bytes = b""
    version: str = "1.1"
    # The number of the connection that it came by.
    connection: int = 0


# Instead of a request that nobody looks at any more.
NOTHING_ASKED = Request("", "", "", (), {}, {})


class Answering(Protocol):
    """The connection that an answer goes out by."""

    def respond(self, status: int, headers: list[tuple[str, str]], body: bytes | None) -> None:
        """Send the head, and the whole body; None: it follows in pieces."""

    def piece(self, data: bytes) -> None:
        """Send more of the body."""

    def complete(self) -> None:
        """Nothing of the body is left."""

    @property
    def has_room(self) -> bool:
        """Say if more may be sent now."""

    def close(self) -> None:
        """Close at once."""


@dataclass(slots=True)
class Exchange:
    """A request, and the one answer to it."""

    request: Request
    _connection: Answering
    # Sent with every answer: what lets a page from elsewhere read it.
    extra: list[tuple[str, str]] = field(default_factory=list)
    is_begun: bool = False
    is_over: bool = False
    # Its answer waits for something to happen: whoever hangs up meanwhile does not want it.
    is_held: bool = False
    # Set by whoever answers later: the peer is gone; there is room for more.
    on_lost: Callable[[], None] | None = None
    on_room: Callable[[], None] | None = None

    @property
    def has_room(self) -> bool:
        """Say if more may be sent now."""
        return not self.is_over and self._connection.has_room

    def answer(
        self,
        status: int,
        body: bytes = b"",
        kind: str = TEXT,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Answer as a whole; once the peer is gone this does nothing."""
        if self.is_over or self.is_begun:
            return
        self.is_begun = self.is_over = True
        self._connection.respond(status, self._headers(kind, headers), body)

    def refuse(
        self,
        error: WeftError,
        status: int = 0,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Answer with an error: its status, or another, and what it is as JSON."""
        status = status or status_of(error)
        if status == HTTPStatus.UNAUTHORIZED:
            headers = (*headers, ("WWW-Authenticate", "Bearer"))
        self.answer(status, error_body(error), JSON, headers)

    def begin(self, kind: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        """Begin an answer that lasts."""
        if not self.is_over and not self.is_begun:
            self.is_begun = True
            self._connection.respond(HTTPStatus.OK, self._headers(kind, headers), None)

    def send(self, data: bytes) -> None:
        """Send more of an answer that lasts."""
        if self.is_begun and not self.is_over and data:
            self._connection.piece(data)

    def end(self) -> None:
        """End an answer that lasted."""
        if self.is_begun and not self.is_over:
            self.is_over = True
            self._connection.complete()

    def abort(self) -> None:
        """Close the connection at once."""
        if not self.is_over:
            self.is_over = True
            self._connection.close()

    def _headers(self, kind: str, headers: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
        always = [
            ("Content-Type", kind),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
        ]
        return [*always, *self.extra, *headers]


def error_body(error: WeftError) -> bytes:
    """Return an error as JSON, on a line."""
    facts = {"number": error.number, "name": type(error).__name__, "text": str(error)}
    return json.dumps({"error": facts}, separators=(",", ":")).encode() + b"\n"


def status_of(error: WeftError) -> int:
    """The HTTP status that says what kind of error it is."""
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return status
    return 400
