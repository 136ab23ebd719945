"""What a connection that speaks HTTP needs of whoever it leads to."""

from typing import TYPE_CHECKING, Protocol

from weft.broker.limits import Limits
from weft.transports.http.exchange import Exchange

if TYPE_CHECKING:
    from weft.transports.http.connection import HttpDoor


class Reception(Protocol):
    """Whoever deals with requests, and knows the time."""

    @property
    def limits(self) -> Limits:
        """What a request may take."""

    @property
    def now_ns(self) -> int:
        """The time on the clock that only goes forward."""

    def deal(self, exchange: Exchange, door: "HttpDoor") -> None:
        """Answer a request, now or later."""

    def is_ours(self, data: bytes) -> bool:
        """Say if a request that begins like this is for this service."""

    def pass_on(self, fd: int) -> None:
        """Own a connection whose next request, of which nothing was read, is for another."""

    def later(self, door: "HttpDoor") -> None:
        """Let a connection go_on() in a turn to come."""

    def left(self, door: "HttpDoor") -> None:
        """A connection is closed."""

    def refused(self, error_name: str) -> None:
        """Count what was refused before anybody dealt with it."""

    def weigh(self, before: int, now: int) -> None:
        """Count how much of what is not complete is held.

        Raises:
            Overloaded: all of them together hold too much.
        """


class Companion(Protocol):
    """What goes along with a connection from one request to the next."""

    def end(self) -> None:
        """The connection is gone."""
