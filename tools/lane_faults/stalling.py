"""Stops reading the lanes of a connection, while what its gateway sends is read as ever.

Their sockets fill up, and what is in them is read after whatever the program does meanwhile.
"""

import asyncio

from weft.client.asyncio.connection import AsyncConnection
from weft.client.lanes.transport import LaneTransport


class _Stalled:
    """A wire whose line is not read until `go_on()`, whatever the connection wants."""

    def __init__(self, wire: LaneTransport) -> None:
        self._wire = wire
        self._line = wire.line
        self._is_resting = False
        if self._line is not None:
            self._line.rest(True)
            self._rest = self._line.rest
            self._line.rest = self._note  # type: ignore[method-assign]  # that is the stall

    def go_on(self) -> None:
        """Read again, if the connection wants that."""
        if self._line is not None:
            self._line.rest = self._rest  # type: ignore[method-assign]  # as it was
            self._line.rest(self._is_resting)

    def _note(self, is_wanted: bool) -> None:
        self._is_resting = is_wanted


def stall_lanes(connection: AsyncConnection, seconds: float) -> None:
    """Read no lane of a connection for a while; no program can ask for that."""
    lanes = connection._engine.lanes.table
    stalled = [_Stalled(lane.wire) for lane in lanes]
    for each in stalled:
        asyncio.get_running_loop().call_later(seconds, each.go_on)
