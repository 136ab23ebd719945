"""What becomes of a connection, told on standard error in the words of the command line."""

from weft.cli import output
from weft.cli.shown import printable
from weft.client.status import Status, What
from weft.errors import ConnectionLost, Overloaded, Refused, WeftError

_TOLD = {What.DISCONNECTED, What.FAILED, What.REFUSED, What.GAP, What.DROPPED}


class Teller:
    """Tells on standard error what a person should know of a connection, and remembers losses."""

    def __init__(self) -> None:
        self._connects = 0
        self._happened: set[What] = set()

    def __call__(self, status: Status) -> None:
        """Tell a loss, a failure, and that it is there again; not that all goes well.

        What keeps the first connection from being made is raised, and told by whoever hears that.
        """
        self._happened.add(status.what)
        self._connects += status.what is What.CONNECTED
        is_told = status.what in _TOLD or (status.what is What.CONNECTED and self._connects > 1)
        if is_told and self._connects:
            reason = f": {printable(str(status.error))}" if status.error else ""
            output.news(f"{status.what}: {printable(status.detail)}{reason}")

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
