"""Interface of the HTTP server, as its connections use it."""

from typing import TYPE_CHECKING, Protocol

from weft.broker.limits import Limits
from weft.transports.http.exchange import Exchange

if TYPE_CHECKING:
    from weft.transports.http.connection import HttpDoor


class Reception(Protocol):
    """Handles the requests of connections."""

    @property
    def limits(self) -> Limits:
        """Limits of a request."""

    @property
    def now_ns(self) -> int:
        """Monotonic time of the current turn."""

    def deal(self, exchange: Exchange, door: "HttpDoor") -> None:
        """Handle a request, now or later."""

    def is_ours(self, data: bytes) -> bool:
        """Return whether a request that begins with these bytes is for this service."""

    def pass_on(self, fd: int) -> None:
        """Take over a connection whose next, unread request is for another service."""

    def later(self, door: "HttpDoor") -> None:
        """Schedule a connection's go_on() for a later turn."""

    def left(self, door: "HttpDoor") -> None:
        """Called when a connection is closed."""

    def refused(self, error_name: str) -> None:
        """Count a request that was refused before it was handled."""

    def weigh(self, before: int, now: int) -> None:
        """Add the change of a connection's incomplete data to the total.

        Raises:
            Overloaded: the total is over its limit.
        """


class Companion(Protocol):
    """State that a connection keeps from one request to the next."""

    def end(self) -> None:
        """Called when the connection is closed."""
