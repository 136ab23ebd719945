"""The gateway of a run: the real service and the real lanes, behind sockets that are made up."""

import random
from collections import Counter
from collections.abc import Callable

from tools.lane_runs.network import Network, Port, Socket
from tools.lane_runs.world import Process

from weft.broker.auth.revalidate import review
from weft.broker.delivery.outbox import Outbox
from weft.broker.disconnect import leave, withdraw_ended
from weft.broker.ingest import READ_BYTES, drop_large, feed, took_large
from weft.broker.limits import Limits
from weft.broker.replies import told
from weft.broker.service import Peer, Service
from weft.broker.sweep import sweep
from weft.errors import SlowReader, WeftError
from weft.lanes.coordinator import LaneCoordinator
from weft.lanes.settings import LaneSettings
from weft.wire.frames import Kind, stamp_frame
from weft.wire.message.message import Message

SERVICE = "default"
LIMITS = Limits(body_bytes=64 << 10, ping_s=2.0, outbox_age_s=10.0)
SWEEP_S = 1.0
# Far more often than a gateway looks: the more changes of way a run has, the better.
TICK_S = 0.1

_PIECE_BYTES = 16 << 10
_ROOM_BYTES = 1 << 20
_BEGAN_NS = 1_000_000_000_000
_WALL_NS = 1_800_000_000_000_000_000


class Door:
    """One connection, as the service knows it."""

    def __init__(self, hub: "Hub", socket: Socket) -> None:
        self.socket = socket
        self.peer: Peer
        self._hub = hub
        self._hears = True

    def fall_behind(self) -> None:
        """Send what is owed, or give up on a reader that is cut."""
        if self.peer.outbox.is_cut:
            self.peer.end(SlowReader(f"{self.peer.name} did not read what it was sent"))
            self.abort()
        else:
            self.press()

    def press(self) -> None:
        """Send more of what is owed."""
        outbox = self.peer.outbox
        while outbox.is_behind() and self.socket.has_room:
            self.socket.send(outbox.draw(_PIECE_BYTES, self.peer.service.now_ns))

    def resume(self) -> None:
        """Nobody is held here."""

    def finish(self) -> None:
        """Close once everything owed was sent; after an error, wait for the peer to read of it."""
        if self.peer.outbox.is_behind() or self.socket.is_closed:
            return
        if self.peer.error is None or not self._hears:
            self.socket.close()
            self._hub.left(self.peer)
        else:
            self.socket.finish()

    def abort(self) -> None:
        """Close at once, whatever is owed."""
        self.socket.abort()
        self._hub.left(self.peer)

    def happened(self) -> None:
        """Read what came, and send what there is room for."""
        socket = self.socket
        self._hub.wake()
        if socket.received:
            data = socket.read(READ_BYTES)
            socket.wake()
            if not self.peer.is_over:
                self._hub.take(self.peer, data)
        elif socket.fault is not None:
            self.abort()
            return
        elif socket.is_ended and self._hears:
            self._hears = False
            self.peer.end(None)
        if self.peer.outbox.is_behind():
            self.press()
        if self.peer.is_over and not self.peer.outbox.owed() and self.peer not in self._hub.ending:
            self.finish()


class Hub:
    """A gateway that may end and begin again, with another number."""

    def __init__(self, process: Process, network: Network, settings: LaneSettings) -> None:
        self.process = process
        self.service: Service
        self.lanes: LaneCoordinator
        self.promotions = 0
        self.demotions: Counter[str] = Counter()
        self._network = network
        self._settings = settings
        self._chance = random.Random(network.chance.random())
        self._lives = 0
        self._port: Port | None = None
        self._is_scheduled = False

    @property
    def ending(self) -> list[Peer]:
        """Those whose end is dealt with at the end of the turn."""
        return self.service.ending

    @property
    def is_up(self) -> bool:
        """Say if it runs."""
        return self._port is not None

    def begin(self) -> None:
        """Start, with a number of its own."""
        self._lives += 1
        secret = self._chance.randbytes(32)
        self.service = Service(SERVICE, "g", 1000 + self._lives, LIMITS, secret)
        self._tell_time()
        self.lanes = LaneCoordinator(self.service, _seen_from)
        self.lanes.settings = self._settings
        self.service.laning = self.lanes
        self.service.desks["lane.direct"] = self._direct
        self._port = self._network.open_port(self.process, self._network.gateway)
        self._port.accept = self._accept
        self._every(TICK_S, self.lanes.tick, self._lives)
        self._every(SWEEP_S, self._sweep, self._lives)

    def kill(self, *, is_dark: bool) -> None:
        """End without a word; in the dark nobody is told even by the system."""
        self._lives += 1
        self._port = None
        self._is_scheduled = False
        self._count()
        if is_dark:
            self._network.go_dark(self.process)
        else:
            self._network.kill(self.process)

    def end(self) -> None:
        """Do nothing more."""
        if self.is_up:
            self.kill(is_dark=True)

    def left(self, peer: Peer) -> None:
        """A connection is closed; not in the middle of a turn."""
        lives = self._lives

        def go() -> None:
            if lives == self._lives:
                leave(peer)
                self.wake()

        self.process.call_soon(go)

    def wake(self) -> None:
        """Make sure that a flush follows in this turn."""
        self._tell_time()
        if not self._is_scheduled:
            self._is_scheduled = True
            lives = self._lives
            self.process.call_soon(lambda: self._flush() if lives == self._lives else None)

    def take(self, peer: Peer, data: bytes) -> None:
        """Deal with what a peer sent."""
        arena = self.service.arena
        at = 0
        while at < len(data) and not peer.is_over:
            if arena.room() < _ROOM_BYTES:
                self._flush()
            if peer.large_size == 0:
                piece = data[at:]
                start = arena.put(peer.rest + piece)
                feed(peer, start, arena.fill)
            else:
                piece = data[at : at + len(peer.large) - peer.large_fill]
                peer.large[peer.large_fill : peer.large_fill + len(piece)] = piece
                if took_large(peer, len(piece)):
                    start = arena.put(peer.large)
                    drop_large(peer)
                    feed(peer, start, arena.fill)
            at += len(piece)

    def _accept(self, socket: Socket) -> None:
        door = Door(self, socket)
        door.peer = self.service.join(self._chance.getrandbits(63), door)
        socket.on_event = door.happened
        socket.wake()

    def _flush(self) -> None:
        """End a turn as a gateway's loop does."""
        service = self.service
        self._is_scheduled = False
        self._tell_time()
        ended = withdraw_ended(service) if service.ending else []
        if service.is_review_due:
            review(service)
        if service.router.is_changed:
            service.router.is_changed = False
            self.lanes.look_at_routes()
        waiting = service.arena.waiting
        position = 0
        while position < len(waiting):
            outbox: Outbox = waiting[position]
            position += 1
            outbox.settle(service.now_ns)
            peer = outbox.owner
            if peer is not None and (outbox.is_behind() or outbox.is_cut):
                peer.door.fall_behind()
        service.arena.reset()
        for over in ended:
            if over.door is not None:
                over.door.finish()
        if service.ending:
            self.wake()

    def _sweep(self) -> None:
        for peer in sweep(self.service):
            if peer.door is not None:
                peer.door.abort()

    def _every(self, seconds: float, act: Callable[[], None], lives: int) -> None:
        def again() -> None:
            if lives == self._lives:
                self.process.call_later(seconds, again)
                self._tell_time()
                act()
                self.wake()

        self.process.call_later(seconds, again)

    def _direct(self, peer: Peer, reply: bytes, request: Message) -> WeftError | None:
        route = self.lanes.ask(peer, request.get_string("subject").encode())
        answer = Message(state=str(route.state), reason=route.reason)
        frame = bytearray(told(peer, Kind.MESSAGE, reply, b"", answer))
        stamp = self.service.stamp
        publisher, stamp.publisher = stamp.publisher, 0
        stamp_frame(frame, 0, stamp)
        stamp.publisher = publisher
        peer.owe(bytes(frame))
        self.wake()
        return None

    def _tell_time(self) -> None:
        now_ns = int(self.process.world.now * 1e9)
        self.service.now_ns = _BEGAN_NS + now_ns
        self.service.wall_ns = _WALL_NS + now_ns

    def _count(self) -> None:
        self.promotions += self.lanes.talk.promotions
        self.demotions.update(self.lanes.talk.demotions)


def _seen_from(peer: Peer) -> str:
    door = peer.door
    return str(door.socket.peer_name[0]) if isinstance(door, Door) else ""
