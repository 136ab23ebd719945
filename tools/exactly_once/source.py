"""Publishes numbered messages to some gateways, whatever becomes of them."""

import logging
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from tools.exactly_once.gateway import Gateway

import weft

# Of one message to the next, in event time.
STEP = timedelta(milliseconds=100)
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
# After this moment every window has ended.
END = datetime(2027, 1, 1, tzinfo=UTC)

_BURST = 100
_PAUSE_S = 0.05


class Source:
    """A thread that publishes so many rows in about so many seconds, and on until it is enough."""

    def __init__(self, gateways: Sequence[Gateway], rows: int, seconds: float) -> None:
        silent = logging.getLogger("exactly_once")
        silent.addHandler(logging.NullHandler())
        silent.propagate = False
        self._connections = [
            weft.Connection(gateway.address, logger=silent) for gateway in gateways
        ]
        self._rows = rows
        self._seconds = seconds
        self.published = 0
        self._is_enough = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def join(self) -> None:
        """Wait until all those rows are published, and publish no more."""
        self._is_enough.set()
        self._thread.join()

    def end(self) -> None:
        """Publish what ends every window, to every gateway, and hang up."""
        for connection in self._connections:
            connection.publish("in.end", {"n": 0, "at": END}, acknowledge=True)
            connection.close()

    def _run(self) -> None:
        began = time.monotonic()
        while self.published < self._rows or not self._is_enough.is_set():
            connection = self._connections[self.published // _BURST % len(self._connections)]
            self._burst(connection)
            due = began + self._seconds * self.published / self._rows
            time.sleep(max(due - time.monotonic(), 0.0))

    def _burst(self, connection: weft.Connection) -> None:
        for number in range(self.published, self.published + _BURST):
            message = {"n": number, "at": FIRST + number * STEP}
            while True:
                try:
                    connection.publish("in.x", message)
                    break
                except weft.WeftError:
                    # The gateway was killed: it comes back.
                    time.sleep(_PAUSE_S)
        self.published += _BURST
