"""One HTTP request and its response, complete or streamed."""

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

# The first class that matches; 400 for any other error.
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
    """A request; `path` holds the decoded elements after the endpoint's name."""

    method: str
    service: str
    door: str
    path: tuple[str, ...]
    query: Mapping[str, str]
    # By lower-case name; repeated headers are joined by a comma.
    headers: Mapping[str, str]
    body: bytes = b""
    version: str = "1.1"
    # Number of its connection.
    connection: int = 0


# In place of a request that is no longer needed.
NOTHING_ASKED = Request("", "", "", (), {}, {})


class ResponseSink(Protocol):
    """The connection that sends a response."""

    def respond(self, status: int, headers: list[tuple[str, str]], body: bytes | None) -> None:
        """Send the head and the complete body; None: the body follows in pieces."""

    def piece(self, data: bytes) -> None:
        """Send the next piece of the body."""

    def complete(self) -> None:
        """End the body."""

    @property
    def has_room(self) -> bool:
        """Return whether more may be sent now."""

    def close(self) -> None:
        """Close at once."""


@dataclass(slots=True)
class Exchange:
    """A request and its response."""

    request: Request
    _connection: ResponseSink
    # Sent with every response: the CORS headers that let a page of another origin read it.
    extra: list[tuple[str, str]] = field(default_factory=list)
    is_begun: bool = False
    is_over: bool = False
    # A long poll: a client that hangs up meanwhile no longer wants the response.
    is_held: bool = False
    # Set by a handler that answers later: called when the peer is gone, or there is room again.
    on_lost: Callable[[], None] | None = None
    on_room: Callable[[], None] | None = None

    @property
    def has_room(self) -> bool:
        """Return whether more may be sent now."""
        return not self.is_over and self._connection.has_room

    def answer(
        self,
        status: int,
        body: bytes = b"",
        kind: str = TEXT,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Send a complete response; no effect after the first, or once the peer is gone."""
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
        """Answer with an error as JSON, and with its status unless another is given."""
        status = status or status_of(error)
        if status == HTTPStatus.UNAUTHORIZED:
            headers = (*headers, ("WWW-Authenticate", "Bearer"))
        self.answer(status, error_body(error), JSON, headers)

    def begin(self, kind: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        """Begin a streamed response."""
        if not self.is_over and not self.is_begun:
            self.is_begun = True
            self._connection.respond(HTTPStatus.OK, self._headers(kind, headers), None)

    def send(self, data: bytes) -> None:
        """Send the next piece of a streamed response."""
        if self.is_begun and not self.is_over and data:
            self._connection.piece(data)

    def end(self) -> None:
        """End a streamed response."""
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
    """Return an error as one line of JSON."""
    facts = {"number": error.number, "name": type(error).__name__, "text": str(error)}
    return json.dumps({"error": facts}, separators=(",", ":")).encode() + b"\n"


def status_of(error: WeftError) -> int:
    """Return the HTTP status of an error."""
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return status
    return 400
