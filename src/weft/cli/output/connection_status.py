"""What becomes of a connection, told on standard error in the words of the command line."""

from weft.cli.output import streams
from weft.cli.output.message_text import printable
from weft.client.status import Status, What
from weft.errors import ConnectionLost, Draining, Overloaded, Refused, WeftError


class Teller:
    """Tells on standard error what a person should know of a connection, and remembers losses."""

    def __init__(self) -> None:
        self._connects = 0
        self._happened: set[What] = set()
        # What was told since the connection was lost, which every attempt would tell again.
        self._told: set[str] = set()

    def __call__(self, status: Status) -> None:
        """Tell a loss, a refusal, and that it is there again; not that all goes well.

        What keeps the first connection from being made is raised, and told by whoever hears that.
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
        """Why some of what was published may not have arrived; None if all of it did.

        It is known once the connection is closed: then everything was told.
        """
        lost = f"some of the {what} may be lost, as"
        if self._connects > 1:
            return ConnectionLost(f"{lost} the connection was lost and made anew")
        if What.REFUSED in self._happened:
            return Refused(f"{lost} the gateway refused some")
        if What.DROPPED in self._happened:
            return Overloaded(f"{lost} the publish buffer was full")
        return None


def _sentence(status: Status) -> str:
    """What is told of a status: empty if nothing is."""
    detail, reason = printable(status.detail), _reason(status)
    match status.what:
        case What.CONNECTED:
            where = detail.removeprefix("connected to ")
            return f"connected again to {where}; messages may have been missed meanwhile"
        case What.DISCONNECTED:
            where = detail.removesuffix(" was lost")
            return f"disconnected from {where}{reason}; trying to connect again"
        # A gap of this kind is told with the connection that ends it.
        case What.GAP if status.gap is None or status.gap.reason != "reconnected":
            return f"gap: {detail}{reason}"
        case What.REFUSED if detail.startswith("attempt "):
            return f"refused{reason}; trying to connect again"
        # Iterating over the subscription raises this error, and the command ends with it.
        case What.REFUSED if detail.startswith("the subscription to "):
            return ""
        case What.REFUSED | What.DROPPED:
            return f"{detail}{reason}"
        case _:
            return ""


def _reason(status: Status) -> str:
    """Why it happened, after a colon, without the words in which it is said already."""
    error = status.error
    if error is None:
        return ""
    if isinstance(error, Draining):
        return ": the gateway is closing down"
    address = status.detail.removesuffix(" was lost")
    return f": {printable(str(error).removeprefix(f'the connection to {address} was '))}"
