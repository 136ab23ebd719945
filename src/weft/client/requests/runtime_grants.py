"""Runtime grants: rights that this client, a service, grants to clients of its service.

They end with the connection that they were sent over; the next connection sends them again.
"""

from difflib import get_close_matches
from typing import Literal, get_args

from weft.client.connection.session import ClientSession
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
    """Grants in the order in which they were made."""

    def __init__(self, session: ClientSession, reporter: Reporter) -> None:
        self._session = session
        self._reporter = reporter
        self._enabled: dict[tuple[str, str], None] = {}

    def add(self, right: str, pattern: str) -> None:
        """Send this grant over every later connection, too."""
        self._enabled[(right, pattern)] = None

    def remove(self, right: str, pattern: str) -> None:
        """Stop sending this grant."""
        self._enabled.pop((right, pattern), None)

    def ask_again(self) -> bytes:
        """Return the frames that send all grants over a new connection."""
        return b"".join([self._frame(right, pattern) for right, pattern in self._enabled])

    def refused(self, right: str, pattern: str, error: WeftError) -> None:
        """Handle a refusal: remove the grant and report it."""
        self.remove(right, pattern)
        detail = f"the right to {right} {pattern} is refused"
        self._reporter.report(Status(What.REFUSED, detail, error))

    def _frame(self, right: str, pattern: str) -> bytes:
        again = _Again(self, self._session, right, pattern)
        reply = self._session.request(again, of_gateway=True).decode()
        return message_frame(ENABLE, enabled_body(right, pattern), reply, Flag.REQUEST)


class _Again:
    """Waiter for the answer to a grant that was sent again."""

    def __init__(
        self, enabling: Enabling, session: ClientSession, right: str, pattern: str
    ) -> None:
        self._enabling = enabling
        self._session = session
        self._what = (right, pattern)

    def answered(self, frame: bytes) -> None:  # noqa: ARG002  # that it came is what counts
        """Take the confirmation."""
        self._session.forget(self)

    def failed(self, error: WeftError) -> None:
        """Take the refusal."""
        self._session.forget(self)
        self._enabling.refused(*self._what, error)

    def lost(self, error: WeftError) -> None:
        """Ignore the loss of the connection: the next one sends the grant again."""


def enabled_body(right: str, pattern: str) -> Message:
    """Return the body of a request to enable or disable a right.

    Raises:
        BadOption: Unknown right.
        BadSubject: Invalid pattern.
    """
    known = get_args(EnabledRight)
    if right not in known:
        near = get_close_matches(right, known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else f", only {', '.join(known)}"
        raise BadOption(f"there is no right {right!r} that can be enabled{hint}")
    checked_pattern(pattern)
    return Message(right=right, pattern=pattern)
