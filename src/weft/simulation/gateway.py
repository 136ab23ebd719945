"""Simulated gateway: the real service and mesh node with a clock of its own.

It can be paused, killed and restarted. While it is paused its input queues up in order, as in the
sockets of a stopped process.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

from weft.broker.delivery.outbox import Outbox
from weft.broker.disconnect import leave, withdraw_ended
from weft.broker.ingest import READ_BYTES, drop_large, feed, took_large
from weft.broker.limits import Limits
from weft.broker.service import Door, Peer, Service
from weft.broker.sweep import sweep
from weft.mesh.channels.coordinator import ChannelCoordinator
from weft.mesh.channels.leases import Note, Promises
from weft.mesh.channels.quorum import Voters
from weft.mesh.node import MeshNode
from weft.mesh.settings import Rules
from weft.simulation.clock import MS, SECOND
from weft.simulation.identity import admission
from weft.simulation.network import Network
from weft.simulation.transports import ClientEnd, LinkEnd
from weft.simulation.wire import Wire

TICK_NS = 50 * MS
SERVICE = "weather"
# Difference between gateway numbers from one incarnation to the next.
LIFE = 10_000
LIMITS = Limits(body_bytes=16 << 10)

_TICKS_PER_SWEEP = 20
# Arena space reserved for one read and its consequences.
_ROOM_BYTES = 1 << 20
_WALL_NS = 1_800_000_000 * SECOND
_BEGAN_NS = 1000 * SECOND


class Hands(NamedTuple):
    """Deviation of a clock: offset, and rate in parts per million."""

    skew_ns: int = 0
    drift_ppm: int = 0


class Watcher(Protocol):
    """Observer of a gateway."""

    def tell(self, text: str) -> None:
        """Record a trace line."""

    def began(self, number: int, before: int) -> None:
        """Record the start of a gateway, with its number before the restart or 0."""

    def saw(self, data: bytes) -> None:
        """Record frames sent on a link."""


class SimGateway:
    """Machine that may run a gateway."""

    def __init__(self, network: Network, place: int, rules: Rules, watcher: Watcher) -> None:
        self.place = place
        self.name = f"g{place}"
        self.address = f"10.0.0.{place}:7411"
        self.hands = Hands()
        self.is_up = False
        self.is_dark = False
        self.is_stopped = False
        # Number of starts, from which the gateway number of each incarnation follows.
        self.lives = 0
        self.service: Service
        self.fabric: MeshNode
        self.channels: ChannelCoordinator
        # Stored leases and voters, which survive a kill.
        self._notes: dict[bytes, Note] = {}
        self._voters: dict[bytes, None] = {}
        # Called when all clients are disconnected.
        self.on_end: list[Callable[[], None]] = []
        self._network = network
        self._clock = network.clock
        self._rules = rules
        self._watcher = watcher
        self._identity = self.name
        self._waiting: list[Callable[[], None]] = []
        # How long input is collected before it is processed; 0: not at all.
        self.turn_ns = 0
        self._heard: list[Callable[[], None]] = []
        self._ticks = 0
        network.sites[self.address] = self

    # Lifecycle.

    @property
    def number(self) -> int:
        """Gateway number of this incarnation."""
        return self.lives * LIFE + self.place

    @property
    def now_ns(self) -> int:
        """Monotonic time by its own clock."""
        now_ns = self._clock.now_ns
        return _BEGAN_NS + now_ns + now_ns * self.hands.drift_ppm // 1_000_000

    def begin(self, *, is_another: bool = False) -> None:
        """Start with a new number; `is_another`: and with a new identity."""
        self.lives += 1
        self.is_up = True
        self.is_dark = self.is_stopped = False
        self._watcher.began(self.number, self.number - LIFE if self.lives > 1 else 0)
        self._ticks = self._network.chance.randrange(_TICKS_PER_SWEEP)
        if is_another:
            self._identity = f"{self.name}/{self.lives}"
            self._notes.clear()
            self._voters.clear()
        self._watcher.tell(f"{self.name} starts as {self.number}")
        self.service = Service(SERVICE, self.name, self.number, LIMITS)
        self._tell_time()
        self.fabric = MeshNode(
            self.service,
            admission(self._identity),
            self.address,
            self._rules,
            self._network.chance,
        )
        self.channels = self._recalled()
        self.fabric.share(self.channels)
        lives = self.lives
        self._clock.after(self._network.chance.randrange(TICK_NS), lambda: self._tick(lives))

    def kill(self, *, is_dark: bool = False) -> None:
        """End at once; `is_dark`: by a power cut, so that connections are not even reset."""
        self._watcher.tell(f"{self.name} is killed{' by a power cut' if is_dark else ''}")
        self.is_up = False
        self.is_dark = is_dark
        self._waiting.clear()
        self._heard.clear()
        if is_dark:
            self._network.go_dark(self.place)
        for peer in list(self.service.peers.values()):
            if isinstance(peer.door, LinkEnd):
                peer.door.outgoing.end()
                peer.door.incoming.receiver = None
        self._part_with_clients()

    def dismiss(self) -> None:
        """Disconnect all clients."""
        for peer in list(self.service.peers.values()):
            if isinstance(peer.door, ClientEnd):
                self.act(partial(peer.end, None))
        self._part_with_clients()

    def stop(self) -> None:
        """Pause."""
        self.is_stopped = True
        self._watcher.tell(f"{self.name} is paused")

    def go_on(self) -> None:
        """Resume, and process the input that arrived meanwhile."""
        if not self.is_stopped:
            return
        self.is_stopped = False
        self._watcher.tell(f"{self.name} resumes")
        waiting, self._waiting = self._waiting, []
        for act in waiting:
            self.act(act)

    # Connections.

    def connect(self, took: Callable[[bytes], None]) -> Peer:
        """Connect a client, which reads without delay."""
        end = ClientEnd(self, took)
        end.peer = self._join(end)
        return end.peer

    def accept(self, outgoing: Wire, incoming: Wire) -> None:
        """Accept a connection from the network."""
        self._link(outgoing, incoming)

    def connected(self, address: str, outgoing: Wire, incoming: Wire) -> None:
        """Report a successful dial to the mesh node."""
        if not self.is_up:
            outgoing.end()
            return
        peer = self._link(outgoing, incoming)
        self.act(lambda: self.fabric.dialled(address, peer))

    def unreachable(self, address: str, why: str) -> None:
        """Report a failed dial to the mesh node."""
        lives = self.lives

        def tell() -> None:
            if lives == self.lives:
                self.fabric.unreachable(address, why)

        self.act(tell)

    # Turns.

    def act(self, act: Callable[[], object]) -> None:
        """Run a function in a turn, now or after a pause."""
        if not self.is_up:
            return
        if self.is_stopped:
            self._waiting.append(lambda: self.act(act))
            return
        self._tell_time()
        act()
        self._flush()

    def hear(self, peer: Peer, data: bytes, then: Callable[[], None] | None = None) -> None:
        """Process received bytes at once, or together with others in the next turn."""
        if not self.turn_ns:
            self.act(lambda: self._take(peer, data, then))
            return
        if not self._heard:
            self._clock.after(self.turn_ns, lambda: self.act(self._take_all))
        self._heard.append(lambda: self._take(peer, data, then))

    def hear_end(self, act: Callable[[], None]) -> None:
        """Process the end of a connection after all that was received from it."""
        if self._heard:
            self._heard.append(act)
        else:
            act()

    def read(self, peer: Peer, data: bytes) -> None:
        """Process received bytes in the current turn."""
        self._take(peer, data, None)

    def reach(self, subject: bytes) -> dict[int, int]:
        """Return the receiving gateways of a subject, with the known versions of their interest."""
        route = self.service.router.route(subject)
        if route is None:
            return {}
        outboxes = [*route.far, *(each for group in route.far_groups for each in group.members)]
        members = self.fabric.members
        known = {outbox.owner.number: members.numbered(outbox.owner.number) for outbox in outboxes}
        return {number: member.wanted.version for number, member in known.items() if member}

    @property
    def wanted_version(self) -> int:
        """Version of the local interest that includes the latest subscriptions."""
        version = self.fabric.members.own.wanted.version
        return version + 1 if self.service.router.changes else version

    def let_go(self, peer: Peer) -> None:
        """Remove a peer whose connection is closed, after the current turn."""
        service = self.service
        if peer.service is service:
            self._clock.after(0, lambda: self.act(lambda: leave(peer)))

    def _recalled(self) -> ChannelCoordinator:
        """Return the channel coordinator with the leases stored by earlier incarnations."""
        now_ns = self.service.now_ns
        channels = ChannelCoordinator(self.service, Voters(bytes(16)), Promises())
        channels.promises.recall(list(self._notes.values()), self._keep, now_ns)
        channels.voters.recall(list(self._voters), self._note_voter, now_ns)
        return channels

    def _keep(self, note: Note) -> None:
        self._notes[note.name] = note

    def _note_voter(self, node: bytes, is_voter: bool) -> None:
        self._voters.pop(node, None)
        if is_voter:
            self._voters[node] = None

    def _part_with_clients(self) -> None:
        told, self.on_end = self.on_end, []
        for tell in told:
            tell()

    def _take_all(self) -> None:
        heard, self._heard = self._heard, []
        for take in heard:
            if self.service.arena.room() < _ROOM_BYTES:
                self._flush()
            take()

    def _tick(self, lives: int) -> None:
        if lives != self.lives or not self.is_up:
            return
        if self.fabric.is_gone:
            self.kill()
            return
        drift_ns = TICK_NS * self.hands.drift_ppm // 1_000_000
        self._clock.after(TICK_NS - drift_ns, lambda: self._tick(lives))
        if not self.is_stopped:
            self.act(self._tend)

    def _tend(self) -> None:
        self._ticks += 1
        if self._ticks % _TICKS_PER_SWEEP == 0:
            for peer in sweep(self.service):
                if peer.door is not None:
                    peer.door.abort()
        for address in self.fabric.tick():
            self._network.dial(self, address)

    def _link(self, outgoing: Wire, incoming: Wire) -> Peer:
        end = LinkEnd(self, outgoing, incoming)
        end.on_sent = self._watcher.saw
        end.peer = self._join(end)
        return end.peer

    def _join(self, door: Door) -> Peer:
        return self.service.join(self._network.chance.getrandbits(63), door)

    def _tell_time(self) -> None:
        now_ns = self.now_ns
        self.service.now_ns = now_ns
        self.service.wall_ns = _WALL_NS + now_ns + self.hands.skew_ns

    def _take(self, peer: Peer, data: bytes, then: Callable[[], None] | None) -> None:
        arena = self.service.arena
        at = 0
        while at < len(data) and not peer.is_over:
            if peer.large_size == 0:
                piece = data[at : at + READ_BYTES]
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
            if at < len(data):
                self._flush()
        if then is not None:
            then()

    def _flush(self) -> None:
        """Flush all outboxes, as at the end of an event-loop turn."""
        service = self.service
        arena = service.arena
        ended = withdraw_ended(service) if service.ending else ()
        waiting = arena.waiting
        position = 0
        while position < len(waiting):
            outbox: Outbox = waiting[position]
            position += 1
            outbox.settle(service.now_ns)
            peer = outbox.owner
            if peer is not None and (outbox.is_behind() or outbox.is_cut):
                peer.door.fall_behind()
        arena.reset()
        for over in ended:
            if over.door is not None:
                over.door.finish()
