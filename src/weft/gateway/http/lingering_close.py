"""Lingering close: after its response, close a connection when the peer does, or after LINGER_S.

An earlier close could cut off the end of the response.
"""

import selectors
import socket
import threading
import time
from collections import deque

LINGER_S = 2.0
LINGERING_MAX = 256

_READ_BYTES = 4096


class Lingering:
    """Thread that waits for the peers of all lingering connections to close."""

    def __init__(self) -> None:
        self._near, self._far = socket.socketpair()
        self._new: deque[socket.socket] = deque()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._far, selectors.EVENT_READ)
        # By age, with the deadline of each.
        self._ends: dict[socket.socket, float] = {}
        self._thread = threading.Thread(target=self._run, name="lingering")
        self._thread.start()

    def add(self, sock: socket.socket) -> None:
        """Take over a non-blocking connection whose response is written; from any thread."""
        self._new.append(sock)
        self._near.send(b"+")

    def close(self) -> None:
        """Close all of them, and end the thread."""
        self._near.close()
        self._thread.join()

    def _run(self) -> None:
        is_open = True
        while is_open:
            for key, _ in self._selector.select(self._wait_s()):
                if key.fileobj is self._far:
                    is_open = bool(self._far.recv(_READ_BYTES))
                elif isinstance(key.fileobj, socket.socket):
                    self._read(key.fileobj)
            while self._new:
                self._begin(self._new.popleft())
            now_s = time.monotonic()
            for sock in [sock for sock, end_s in self._ends.items() if end_s <= now_s]:
                self._end(sock)
        for sock in list(self._ends):
            self._end(sock)
        self._selector.close()
        self._far.close()

    def _wait_s(self) -> float | None:
        if not self._ends:
            return None
        return max(0.0, next(iter(self._ends.values())) - time.monotonic())

    def _begin(self, sock: socket.socket) -> None:
        if len(self._ends) >= LINGERING_MAX:
            self._end(next(iter(self._ends)))
        try:
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            # The peer closed it already.
            sock.close()
            return
        self._selector.register(sock, selectors.EVENT_READ)
        self._ends[sock] = time.monotonic() + LINGER_S

    def _read(self, sock: socket.socket) -> None:
        try:
            if sock in self._ends and not sock.recv(_READ_BYTES):
                self._end(sock)
        except BlockingIOError:
            return
        except OSError:
            self._end(sock)

    def _end(self, sock: socket.socket) -> None:
        del self._ends[sock]
        self._selector.unregister(sock)
        sock.close()
