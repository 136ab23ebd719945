"""Rights that this client, a service, has enabled for clients of its service.

They end with the connection that they were enabled over; the next one enables them anew.
"""

from difflib import get_close_matches
from typing import Literal, get_args

from weft.client.connection.session import Session
from weft.client.publish.encode import message_frame
from weft.client.status import Reporter, Status, What
from weft.errors import BadOption, WeftError
from weft.wire.frames import Flag
from weft.wire.message.message import Message
from weft.wire.subjects import checked_pattern

ENABLE = "_WEFT.ask.enable"
DISABLE = "_WEFT.ask.disable"

EnabledRight = Literal["publish", "subscribe", "request"]


class Enabling:
    """What is enabled, in the order that it was."""

    def __init__(self, session: Session, reporter: Reporter) -> None:
        self._session = session
        self._reporter = reporter
        self._enabled: dict[tuple[str, str], None] = {}

    def add(self, right: str, pattern: str) -> None:
        """Enable it over every later connection as well."""
        self._enabled[(right, pattern)] = None

    def remove(self, right: str, pattern: str) -> None:
        """Enable it no more."""
        self._enabled.pop((right, pattern), None)

    def ask_again(self) -> bytes:
        """The frames that enable everything over a new connection."""
        return b"".join([self._frame(right, pattern) for right, pattern in self._enabled])

    def refused(self, right: str, pattern: str, error: WeftError) -> None:
        """The gateway will not have it any more."""
        self.remove(right, pattern)
        detail = f"enabling to {right} {pattern} is refused"
        self._reporter.report(Status(What.REFUSED, detail, error))

    def _frame(self, right: str, pattern: str) -> bytes:
        again = _Again(self, self._session, right, pattern)
        reply = self._session.request(again, of_gateway=True).decode()
        return message_frame(ENABLE, enabled_body(right, pattern), reply, Flag.REQUEST)


class _Again:
    """Awaits the answer to what nobody waits for."""

    def __init__(self, enabling: Enabling, session: Session, right: str, pattern: str) -> None:
        self._enabling = enabling
        self._session = session
        self._what = (right, pattern)

    def answered(self, frame: bytes) -> None:  # noqa: ARG002  # that it came is what counts
        """It is enabled."""
        self._session.forget(self)

    def failed(self, error: WeftError) -> None:
        """It is not."""
        self._session.forget(self)
        self._enabling.refused(*self._what, error)

    def lost(self, error: WeftError) -> None:
        """The connection ended first; the next one is asked anew."""


def enabled_body(right: str, pattern: str) -> Message:
    """What a gateway is told to enable, or to disable.

    Raises:
        BadOption: there is no such right.
        BadSubject: the pattern is not legal.
    """
    known = get_args(EnabledRight)
    if right not in known:
        near = get_close_matches(right, known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else f", only {', '.join(known)}"
        raise BadOption(f"there is no right {right!r} that can be enabled{hint}")
    checked_pattern(pattern)
    return Message(right=right, pattern=pattern)
