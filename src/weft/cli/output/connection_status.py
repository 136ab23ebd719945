"""Status of a connection, printed on standard error in the terms of the command line."""

from weft.cli.output import streams
from weft.cli.output.message_text import printable
from weft.client.status import Status, What
from weft.errors import ConnectionLost, Draining, Overloaded, Refused, WeftError


class Teller:
    """Status callback that prints losses and errors on standard error, and remembers losses."""

    def __init__(self) -> None:
        self._connects = 0
        self._happened: set[What] = set()
        # Texts printed since the connection was lost: every attempt would repeat them.
        self._told: set[str] = set()

    def __call__(self, status: Status) -> None:
        """Print losses, refusals and reconnects; nothing while all goes well.

        An error of the first attempt to connect is raised elsewhere, and not printed here.
        """
        self._happened.add(status.what)
        self._connects += status.what is What.CONNECTED
        if status.what in (What.CONNECTED, What.DISCONNECTED):
            self._told.clear()
        text = _sentence(status)
        is_first = status.what is What.CONNECTED and self._connects == 1
        if not text or not self._connects or is_first or text in self._told:
            return
        if status.what is What.REFUSED:
            self._told.add(text)
        streams.news(text)

    def loss(self, what: str) -> WeftError | None:
        """Return why published messages may not have arrived; None if all of them did.

        Valid once the connection is closed, when all events have been reported.
        """
        lost = f"some of the {what} may be lost, as"
        if self._connects > 1:
            return ConnectionLost(f"{lost} the connection was lost and reconnected")
        if What.REFUSED in self._happened:
            return Refused(f"{lost} the gateway refused some")
        if What.DROPPED in self._happened:
            return Overloaded(f"{lost} the publish buffer was full")
        return None


def _sentence(status: Status) -> str:
    """Return the text for a status; empty to print nothing."""
    detail, reason = printable(status.detail), _reason(status)
    match status.what:
        case What.CONNECTED:
            where = detail.removeprefix("connected to ")
            return f"connected again to {where}; messages may have been missed meanwhile"
        case What.DISCONNECTED:
            where = detail.removesuffix(" was lost")
            return f"disconnected from {where}{reason}; trying to connect again"
        # A gap of this kind is printed with the reconnect.
        case What.GAP if status.gap is None or status.gap.reason != "reconnected":
            return f"gap: {detail}{reason}"
        case What.REFUSED if detail.startswith("attempt "):
            return f"refused{reason}; trying to connect again"
        # Iterating over the subscription raises this error, which ends the command.
        case What.REFUSED if detail.startswith("the subscription to "):
            return ""
        case What.REFUSED | What.DROPPED:
            return f"{detail}{reason}"
        case _:
            return ""


def _reason(status: Status) -> str:
    """Return the reason after a colon, without the part that the text has already."""
    error = status.error
    if error is None:
        return ""
    if isinstance(error, Draining):
        return ": the gateway is closing down"
    address = status.detail.removesuffix(" was lost")
    return f": {printable(str(error).removeprefix(f'the connection to {address} was '))}"
