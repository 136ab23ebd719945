"""Poller of one service: its own epoll, which the event loop watches as a single descriptor.

This is several times cheaper than one reader of the loop per connection, makes one turn of all
sockets that are ready, and keeps reporting a broken socket until it is handled.

Where the loop has little else to do, turns may follow one another without returning to it. Then the
Where the loop has little else to do, turns may follow one another without returning to it. Then the
poller may also busy-poll before it blocks: a wake-up takes longer, and costs both sides more, than
the gap between two messages of a lively exchange. After a request it spins longer, because both the
response and the next request are likely to follow. After spinning in vain it skips busy polling for
a number of blocking waits, which doubles with each failure.
"""

import logging
import select
from asyncio import AbstractEventLoop
from time import monotonic_ns
from typing import Protocol

from weft.errors import InternalError, WeftError
from weft.transports.loop.turn import Turn

_log = logging.getLogger(__name__)

READING = select.EPOLLIN
WRITING = select.EPOLLOUT

# Sockets handled in one turn, before the rest of the loop runs.
_BATCH_MAX = 256
# How long consecutive turns may keep the loop waiting, and how long one blocking wait may take. A
# shorter wait would need a timer of its own.
_STAY_NS = 20_000_000
_REST_S = 0.05
# How long to spin before blocking, and the maximum of blocking waits without spinning.
_LOOK_NS = 80_000
_LOOK_ASKED_NS = 250_000
_LEFT_OUT_MAX = 32
# For how long after a request to spin longer.
_LIVELY_NS = 1_000_000


class Watched(Protocol):
    """Owner of a watched socket."""

    def happened(self, events: int) -> None:
        """Called when the socket is ready; a broken one is reported as ready, too."""

    def give_up(self, error: WeftError) -> None:
        """Close the connection at once."""


class Poll:
    """Poller: dispatches socket events to the transports of a service."""

    def __init__(self, turn: Turn, loop: AbstractEventLoop) -> None:
        self._turn = turn
        self._loop = loop
        self._doors: dict[int, Watched] = {}
        self.looks = True
        self._stays = False
        self._guest = -1
        # Number of requests so far, and the time of the last one.
        self._asked = 0
        self._asked_ns = 0
        # Blocking waits left without spinning, and their number after the next failure.
        self._left_out = 0
        self._failure = 1
        self._epoll = select.epoll()
        self._loop.add_reader(self._epoll.fileno(), self._wake)

    def stay(self, guest: int) -> None:
        """Run consecutive turns without the loop until `guest`, its own descriptor, is readable."""
        self._epoll.register(guest, READING)
        self._guest = guest
        self._stays = True

    def leave(self) -> None:
        """Return to the loop after each turn again."""
        if self._stays:
            self._stays = False
            self._epoll.unregister(self._guest)
            self._guest = -1

    def watch(self, fd: int, door: Watched, events: int) -> None:
        """Watch a descriptor for these events, READING and WRITING; 0 removes it."""
        if not events:
            del self._doors[fd]
            self._epoll.unregister(fd)
        elif fd in self._doors:
            self._epoll.modify(fd, events)
        else:
            self._epoll.register(fd, events)
            self._doors[fd] = door

    def close(self) -> None:
        """Stop watching all sockets."""
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _wake(self) -> None:
        """Run turns while sockets are ready; called by the loop."""
        is_called_for = self._make_turn(self._epoll.poll(0, _BATCH_MAX))
        ends_ns = self._turn.service.now_ns + _STAY_NS
        while self._stays and not is_called_for and self._turn.service.now_ns < ends_ns:
            ready = self._look() or self._epoll.poll(_REST_S, _BATCH_MAX)
            if not ready:
                return
            is_called_for = self._make_turn(ready)

    def _look(self) -> list[tuple[int, int]]:
        """Busy-poll; return the sockets that became ready, if any."""
        ready: list[tuple[int, int]] = []
        if not self.looks:
            return ready
        if self._left_out > 0:
            self._left_out -= 1
            return ready
        began_ns = monotonic_ns()
        ready = self._epoll.poll(0, _BATCH_MAX)
        if ready:
            # Ready at once: this does not show whether spinning pays.
            return ready
        is_lively = began_ns - self._asked_ns < _LIVELY_NS
        ends_ns = began_ns + (_LOOK_ASKED_NS if is_lively else _LOOK_NS)
        while not ready and monotonic_ns() < ends_ns:
            ready = self._epoll.poll(0, _BATCH_MAX)
        self._failure = 1 if ready else min(2 * self._failure, _LEFT_OUT_MAX)
        self._left_out = 0 if ready else self._failure
        return ready

    def _make_turn(self, ready: list[tuple[int, int]]) -> bool:
        """Handle ready sockets and flush; return whether the loop must run."""
        is_called_for = False
        self._turn.begin()
        try:
            for fd, events in ready:
                # None if an earlier event of this batch closed it.
                door = self._doors.get(fd)
                if door is None:
                    is_called_for = is_called_for or fd == self._guest
                    continue
                try:
                    door.happened(events)
                except Exception:
                    # A bug in the gateway; how much of the input was handled is unknown.
                    _log.exception("closed a connection after an unexpected error")
                    door.give_up(InternalError("the gateway failed"))
        finally:
            self._turn.flush()
        service = self._turn.service
        if service.request_turn != self._asked:
            self._asked = service.request_turn
            self._asked_ns = service.now_ns
        return is_called_for or self._turn.is_scheduled or self._turn.is_loop_needed
