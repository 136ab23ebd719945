"""What lanes need of the connection that they belong to."""

from typing import Protocol

from weft.client.connection.session import Session
from weft.client.lanes.receive_stream import Run
from weft.client.status import Reporter
from weft.client.subscriptions.flow_control import Reading
from weft.client.subscriptions.subscriptions import Subscriptions
from weft.errors import WeftError


class Gate(Protocol):
    """A connection, as its lanes know it."""

    session: Session
    subscriptions: Subscriptions
    reading: Reading
    reporter: Reporter

    def tell_gateway(self, frame: bytes) -> None:
        """Send a frame to the gateway, after all that was sent before."""

    def deal(self, runs: list[Run]) -> None:
        """Hand messages to whoever wants them."""

    def flush(self) -> None:
        """Send what is buffered."""

    def gone(self, replies: list[bytes], error: WeftError) -> None:
        """Whoever was asked by a lane is gone: no answer to these comes."""

    def local_host(self) -> str:
        """The address of this machine by which the gateway knows it."""
