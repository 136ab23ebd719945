"""Interface of a connection for its lanes."""

from typing import Protocol

from weft.client.connection.session import ClientSession
from weft.client.lanes.receive_stream import Run
from weft.client.status import Reporter
from weft.client.subscriptions.flow_control import Reading
from weft.client.subscriptions.subscriptions import Subscriptions
from weft.errors import WeftError


class LaneConnection(Protocol):
    """Interface of the engine that owns the lanes."""

    session: ClientSession
    subscriptions: Subscriptions
    reading: Reading
    reporter: Reporter

    def tell_gateway(self, frame: bytes) -> None:
        """Send a frame to the gateway, after all frames sent before."""

    def deal(self, runs: list[Run]) -> None:
        """Deliver messages to their subscriptions and waiters."""

    def flush(self) -> None:
        """Send buffered frames."""

    def gone(self, replies: list[bytes], error: WeftError) -> None:
        """Fail requests whose responder on a lane is gone."""

    def local_host(self) -> str:
        """Return the local address of the connection to the gateway."""
