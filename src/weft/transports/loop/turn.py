"""Turn of the event loop: reads from all ready sockets, then one flush of all outboxes.

The reads of a turn go into the arena one after the other. At its end each outbox with new frames is
gathered and sent once, straight to its socket; the transport queues what the socket refuses.
"""

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from time import monotonic_ns, time_ns

from weft.broker.auth.revalidate import review
from weft.broker.delivery.backpressure import SLICE_NS, end_holds
from weft.broker.delivery.outbox import Outbox
from weft.broker.disconnect import withdraw_ended
from weft.broker.ingest import READ_BYTES, drop_large, feed, took_large
from weft.broker.service import Peer, Service
from weft.transports.loop.syscalls import NOT_NOW, receive, send

_READ = READ_BYTES
# Space for the answers to one read: an ERROR is about four times as long as the shortest frame.
_ANSWERS = 8 * READ_BYTES
# A message may be copied for a reply alias, and again when its subject is one.
_COPIES = 3
_NOT_NOW = NOT_NOW
_SLICE_S = SLICE_NS / 1e9


class Turn:
    """Turns of one service."""

    def __init__(self, service: Service, loop: AbstractEventLoop) -> None:
        self.service = service
        self._call_soon = loop.call_soon
        self._loop = loop
        self._ignored = bytearray(_READ)
        self.is_scheduled = False
        # The loop must run before the next turn.
        self.is_loop_needed = False
        # Timer that ends the current pause of publishers.
        self._slice: TimerHandle | None = None
        # Called when a peer has left.
        self.on_left: Callable[[], None] | None = None

    def read(self, peer: Peer, fd: int) -> int:
        """Read once from a peer's socket and handle the frames; return as syscalls.receive()."""
        if peer.is_over:
            # Read and ignore, so that the peer's end can receive the reason of its disconnect.
            return receive(fd, self._ignored, 0, _READ)
        arena = self.service.arena
        if peer.large_size > 0:
            count = receive(fd, peer.large, peer.large_fill, len(peer.large) - peer.large_fill)
            if count > 0:
                self._took_large(peer, count)
            return count
        if not self._make_room(peer, _READ + len(peer.rest)):
            return NOT_NOW
        start = arena.put(peer.rest)
        count = receive(fd, arena.data, arena.fill, _READ)
        if count > 0:
            arena.took(count)
            self._deal(peer, start)
        return count

    def hear(self, peer: Peer, frames: bytes) -> None:
        """Handle whole frames that an adapter built for its peer.

        Must not be called during a flush.
        """
        if not peer.is_over and self._make_room(peer, _COPIES * len(frames)):
            self._deal(peer, self.service.arena.put(frames))

    def begin(self) -> None:
        """Begin a turn, which the caller ends with flush()."""
        self.is_scheduled = True
        self.is_loop_needed = False
        self._tell_time()

    def later(self, act: Callable[[], None]) -> None:
        """Schedule a call soon, for work that must not be done during a flush."""
        self.is_loop_needed = True
        self._call_soon(act)

    def wake(self) -> None:
        """Schedule a flush in this iteration of the loop."""
        if not self.is_scheduled:
            self.is_scheduled = True
            self._call_soon(self.flush)

    def left(self) -> None:
        """Called when a peer has left: run `on_left`."""
        self.wake()
        if self.on_left is not None:
            self.on_left()

    def flush(self) -> None:
        """Send all queued frames and end the turn."""
        service = self.service
        arena = service.arena
        self.is_scheduled = False
        ended = withdraw_ended(service) if service.ending else []
        self._review()
        # Callbacks of transports can queue more: the list may grow during the loop.
        if service.router.journal is not None:
            service.router.journal.keep()
        waiting = arena.waiting
        position = 0
        while position < len(waiting):
            outbox = waiting[position]
            position += 1
            is_broken = outbox.fd >= 0 and not outbox.is_behind() and not _send(outbox, service)
            outbox.settle(service.now_ns)
            peer = outbox.owner
            if peer is None:
                continue
            if is_broken:
                peer.door.abort()
            elif outbox.is_behind() or outbox.is_cut:
                peer.door.fall_behind()
        arena.reset()
        for over in ended:
            if over.door is not None:
                over.door.finish()
        if service.ending:
            self.wake()
        if service.holds:
            self._look_at_holds()

    def _review(self) -> None:
        """Apply the changes of this turn that concern other peers."""
        service = self.service
        if service.is_review_due:
            review(service)
        if service.router.is_changed and service.laning is not None:
            service.router.is_changed = False
            service.laning.look_at_routes()

    def _look_at_holds(self) -> None:
        """Resume publishers whose subscribers have caught up; set a timer for the others."""
        if self.service.budget.is_eased:
            self._end_holds()
        if self.service.holds and self._slice is None:
            self._slice = self._loop.call_later(_SLICE_S, self._slice_over)

    def _slice_over(self) -> None:
        self._slice = None
        self._tell_time()
        self._end_holds()
        self.wake()

    def _end_holds(self) -> None:
        for peer in end_holds(self.service):
            if peer.door is not None:
                peer.door.resume()

    def _took_large(self, peer: Peer, count: int) -> None:
        self._tell_time()
        self.wake()
        if not took_large(peer, count):
            return
        if self._make_room(peer, _COPIES * peer.large_size):
            start = self.service.arena.put(peer.large)
            drop_large(peer)
            self._deal(peer, start)

    def _make_room(self, peer: Peer, needed: int) -> bool:
        """Flush if the arena lacks space; return False if the peer has left because of that."""
        if self.service.arena.room() < needed + _ANSWERS:
            self.flush()
        return not peer.is_over

    def _deal(self, peer: Peer, start: int) -> None:
        self._tell_time()
        feed(peer, start, self.service.arena.fill)
        self.wake()

    def _tell_time(self) -> None:
        self.service.now_ns = monotonic_ns()
        self.service.wall_ns = time_ns()


def _send(outbox: Outbox, service: Service) -> bool:
    """Send as much as the socket takes; False if it is broken."""
    data = service.arena.data
    while outbox.pending > 0:
        start = outbox.gather()
        count = send(outbox.fd, data, start, outbox.gathered)
        if count < 0:
            return count == _NOT_NOW
        outbox.sent(count)
        service.bytes_out += count
        if count < outbox.gathered:
            break
    return True
