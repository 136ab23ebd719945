"""The sockets of one service, watched by an epoll of our own.

The loop watches that epoll alone. It is several times cheaper than a reader of the loop for each
connection, whatever happened in one go is one turn, and a socket that broke is told of until it is
dealt with.

Where the loop has little else to do, turns may follow one another without it. Then we may also look
for what comes next before we rest: to be woken takes longer, and costs both sides more, than the
gap between two messages of a lively exchange. Where somebody just asked a question we look longer,
because both the answer and the next question are waited for. Looking that found nothing is left out
for a while, twice as long each time.
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

# So many are dealt with before the rest of the loop has its turn.
_BATCH_MAX = 256
# How long the loop may be kept waiting by turns that follow one another, and by a rest before one.
# A short rest would cost a timer of its own.
_STAY_NS = 20_000_000
_REST_S = 0.05
# How long to look before resting, and for how many rests at most it is left out.
_LOOK_NS = 80_000
_LOOK_ASKED_NS = 250_000
_LEFT_OUT_MAX = 32
# For how long after a question the exchange is lively.
_LIVELY_NS = 1_000_000


class Watched(Protocol):
    """What is asked of whoever has a socket watched."""

    def happened(self, events: int) -> None:
        """The socket can be read or written, or is broken, which either will tell."""

    def give_up(self, error: WeftError) -> None:
        """End the connection at once."""


class Poll:
    """Which door is told of which socket."""

    def __init__(self, turn: Turn, loop: AbstractEventLoop) -> None:
        self._turn = turn
        self._loop = loop
        self._doors: dict[int, Watched] = {}
        self.looks = True
        self._stays = False
        self._guest = -1
        # How many questions there were, and when the last of them came.
        self._asked = 0
        self._asked_ns = 0
        # For how many rests looking is left out now, and will be when it fails again.
        self._left_out = 0
        self._failure = 1
        self._epoll = select.epoll()
        self._loop.add_reader(self._epoll.fileno(), self._wake)

    def stay(self, guest: int) -> None:
        """Wait for the next turn here, for a moment, unless the loop has its guest to read."""
        self._epoll.register(guest, READING)
        self._guest = guest
        self._stays = True

    def leave(self) -> None:
        """Return to the loop after each turn; it has no guest any more."""
        if self._stays:
            self._stays = False
            self._epoll.unregister(self._guest)
            self._guest = -1

    def watch(self, fd: int, door: Watched, events: int) -> None:
        """Tell a door of these events, READING and WRITING, from now on; of none if it is 0."""
        if not events:
            del self._doors[fd]
            self._epoll.unregister(fd)
        elif fd in self._doors:
            self._epoll.modify(fd, events)
        else:
            self._epoll.register(fd, events)
            self._doors[fd] = door

    def close(self) -> None:
        """Watch nothing any more."""
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _wake(self) -> None:
        """Make a turn of what happened, and of what happens next; the loop calls this."""
        is_called_for = self._make_turn(self._epoll.poll(0, _BATCH_MAX))
        ends_ns = self._turn.service.now_ns + _STAY_NS
        while self._stays and not is_called_for and self._turn.service.now_ns < ends_ns:
            ready = self._look() or self._epoll.poll(_REST_S, _BATCH_MAX)
            if not ready:
                return
            is_called_for = self._make_turn(ready)

    def _look(self) -> list[tuple[int, int]]:
        """What is ready now or very soon, if it is worth looking."""
        ready: list[tuple[int, int]] = []
        if not self.looks:
            return ready
        if self._left_out > 0:
            self._left_out -= 1
            return ready
        began_ns = monotonic_ns()
        ready = self._epoll.poll(0, _BATCH_MAX)
        if ready:
            # Here already: that says nothing of what looking longer is good for.
            return ready
        is_lively = began_ns - self._asked_ns < _LIVELY_NS
        ends_ns = began_ns + (_LOOK_ASKED_NS if is_lively else _LOOK_NS)
        while not ready and monotonic_ns() < ends_ns:
            ready = self._epoll.poll(0, _BATCH_MAX)
        self._failure = 1 if ready else min(2 * self._failure, _LEFT_OUT_MAX)
        self._left_out = 0 if ready else self._failure
        return ready

    def _make_turn(self, ready: list[tuple[int, int]]) -> bool:
        """Deal with what is ready, and send what that gives; True if the loop is called for."""
        is_called_for = False
        self._turn.begin()
        try:
            for fd, events in ready:
                # An earlier one of the batch may have ended it.
                door = self._doors.get(fd)
                if door is None:
                    is_called_for = is_called_for or fd == self._guest
                    continue
                try:
                    door.happened(events)
                except Exception:
                    # A fault of ours, with no telling what of its bytes was dealt with.
                    _log.exception("a connection is given up")
                    door.give_up(InternalError("the gateway failed"))
        finally:
            self._turn.flush()
        service = self._turn.service
        if service.request_turn != self._asked:
            self._asked = service.request_turn
            self._asked_ns = service.now_ns
        return is_called_for or self._turn.is_scheduled or self._turn.is_loop_needed
