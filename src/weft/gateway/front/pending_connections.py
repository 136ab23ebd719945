"""Pending connections: accepted, but their first bytes do not yet tell the protocol and service.

The bytes stay in the socket for its next owner. Waiting costs no CPU: the kernel wakes us when
enough bytes have arrived, when the peer closes, or at the deadline. One timer serves them all, and
one epoll of our own, which is several times cheaper than a reader of the loop for each connection.
"""

import asyncio
import select
import socket
from collections.abc import Callable

# Edge-triggered, because a Unix socket ignores the low-water mark and would wake us repeatedly.
_EVENTS = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET
_GONE = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR
_SWEEP_S = 0.25
# Most events handled in one turn of the loop.
_POLL_MAX = 128


class Visitor:
    """An accepted connection that is not yet classified."""

    def __init__(self, fd: int, peer: str, deadline: float, *, is_encrypted: bool) -> None:
        self.fd = fd
        self.peer = peer
        self.deadline = deadline
        # TLS: protocol and service show only after the handshake.
        self.is_encrypted = is_encrypted
        self.low_water = 1
        self.speaks_http = False
        # A request for a service that does not run, its head incomplete.
        self.is_for_door = False
        # The peer has sent everything.
        self.is_ended = False


class Lobby:
    """Pending connections by file descriptor, oldest first.

    `look` is called when a connection has sent more, with True if no more will come: it may keep
    or forget it. `late` is called at its deadline, and must forget it.
    """

    def __init__(
        self, look: Callable[[Visitor, bool], None], late: Callable[[Visitor], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._look = look
        self._late = late
        self._visitors: dict[int, Visitor] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._epoll = select.epoll()
        self._loop.add_reader(self._epoll.fileno(), self._wake)

    def __len__(self) -> int:
        return len(self._visitors)

    def __contains__(self, visitor: Visitor) -> bool:
        return visitor.fd in self._visitors

    @property
    def oldest(self) -> Visitor:
        """Connection that has waited longest."""
        return next(iter(self._visitors.values()))

    def keep(self, visitor: Visitor, needed: int) -> None:
        """Wait until `needed` bytes have arrived in total."""
        if needed != visitor.low_water:
            _set_low_water(visitor, needed)
        if visitor.fd not in self._visitors:
            self._visitors[visitor.fd] = visitor
            self._epoll.register(visitor.fd, _EVENTS)
        if self._sweep is None:
            self._sweep = self._loop.call_later(_SWEEP_S, self._sweep_out)

    def forget(self, visitor: Visitor) -> None:
        """Stop waiting; the socket is as it was before, and the caller's."""
        if self._visitors.pop(visitor.fd, None) is not None:
            # Explicitly: closing it does not unregister it while a worker has the socket.
            self._epoll.unregister(visitor.fd)
        if visitor.low_water != 1:
            _set_low_water(visitor, 1)

    def empty(self) -> list[Visitor]:
        """Forget and return all connections."""
        visitors = list(self._visitors.values())
        for visitor in visitors:
            self.forget(visitor)
        return visitors

    def close(self) -> None:
        """Stop polling; no connection may be pending."""
        if self._sweep is not None:
            self._sweep.cancel()
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _wake(self) -> None:
        for descriptor, events in self._epoll.poll(0, _POLL_MAX):
            # The handling of an earlier event of this batch may have removed it.
            visitor = self._visitors.get(descriptor)
            if visitor is not None:
                self._look(visitor, bool(events & _GONE))

    def _sweep_out(self) -> None:
        self._sweep = None
        now = self._loop.time()
        while self._visitors and self.oldest.deadline <= now:
            self._late(self.oldest)
        if self._visitors:
            self._sweep = self._loop.call_later(_SWEEP_S, self._sweep_out)


def _set_low_water(visitor: Visitor, needed: int) -> None:
    """Set the low-water mark of a socket, if it supports one: the kernel wakes us only then."""
    borrowed = socket.socket(fileno=visitor.fd)
    try:
        if borrowed.family != socket.AF_UNIX:
            borrowed.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, needed)
            visitor.low_water = needed
    finally:
        borrowed.detach()
