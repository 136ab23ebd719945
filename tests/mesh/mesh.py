"""A mesh of whole gateways without sockets: real services and fabrics on one clock.

Nothing takes time on the way: what is sent is there at once, and a test says how time passes.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Protocol

from tests.mesh.gateways import MS_NS, SECOND_NS, Gateway, Local

from weft.broker.disconnect import leave
from weft.broker.service import Peer
from weft.broker.sweep import sweep
from weft.mesh.channels.coordinator import ChannelCoordinator
from weft.mesh.channels.leases import Promises
from weft.mesh.channels.quorum import Voters
from weft.mesh.links.handshake import Admission
from weft.mesh.links.link import Link
from weft.mesh.links.signing import Signer, verify
from weft.mesh.node import MeshNode
from weft.mesh.settings import Rules

SECRET = b"what only members know"
TICK_NS = 50 * MS_NS


class Pipe:
    """One direction of a connection: what was sent and not heard yet."""

    def __init__(self, source: str, target: str) -> None:
        self.source = source
        self.target = target
        self.data = bytearray()
        self.is_stalled = False
        # Nothing comes through any more, and nobody is told.
        self.is_dead = False
        self.is_over = False
        self.hear: Callable[[bytes], None]
        self.hang_up: Callable[[], None]

    def took(self, data: bytes) -> None:
        """Bytes are sent."""
        if not self.is_dead:
            self.data += data

    def carry(self) -> bool:
        """Bring what was sent to the other end; False if there was nothing."""
        if self.data:
            data = bytes(self.data)
            self.data.clear()
            self.hear(data)
            return True
        if self.is_over and not self.is_dead:
            self.is_dead = True
            self.hang_up()
            return True
        return False


class Site(Protocol):
    """Whatever listens at an address."""

    def accept(self, outgoing: Pipe, incoming: Pipe) -> None:
        """Somebody has connected."""


class Node(Gateway):
    """One gateway of a mesh, for one life."""

    def __init__(
        self, mesh: "Net", place: int, number: int, rules: Rules, admission: Admission
    ) -> None:
        super().__init__(number, name=mesh.names.get(place, ""))
        self.address = address_of(place)
        self.mesh = mesh
        self.is_up = True
        self._ticks = 0
        self.tell_time()
        self.service.wall_ns += mesh.skew_ns.get(place, 0)
        self.fabric = MeshNode(self.service, admission, self.address, rules, mesh.chance)
        self.traffic = self.fabric.traffic
        self.channels = ChannelCoordinator(self.service, Voters(bytes(16)), Promises())
        self.fabric.share(self.channels)

    @property
    def node(self) -> bytes:
        """By which it is known for good."""
        return self.fabric.members.own.node

    @property
    def refused(self) -> dict[str, int]:
        """What was refused here, by its name."""
        counts = dict(self.traffic.counts.refused)
        for name, count in self.service.refused.items():
            counts[name] = counts.get(name, 0) + count
        return counts

    def link_to(self, other: "Node") -> Link | None:
        """Its link with another, if both say that it is ready."""
        for link in self.fabric.links.values():
            if link.node == other.node and link.is_ready:
                return link
        return None

    def knows(self) -> set[int]:
        """The numbers of the gateways that it has a way to."""
        return {member.number for member in self.fabric.members.there()}

    def listen(self, *patterns: bytes, group: bytes = b"") -> Local:
        """Somebody subscribes here, and everybody has learnt of it."""
        local = self.local(*patterns, group=group)
        self.mesh.wait(0.5)
        return local

    def connect(self, outgoing: Pipe, incoming: Pipe) -> Peer:
        """Take up one end of a connection."""
        peer = self.service.join(self.mesh.chance.getrandbits(63), _Door(outgoing))
        self._ends[peer.number] = outgoing
        incoming.hear = partial(self.read, peer)
        incoming.hang_up = partial(self._lose, peer)
        return peer

    def accept(self, outgoing: Pipe, incoming: Pipe) -> None:
        """Somebody has connected."""
        self.connect(outgoing, incoming)

    def dial(self, address: str) -> None:
        """Connect with whatever listens at an address."""
        pipes = self.mesh.connect(self.address, address)
        if pipes is None:
            self.fabric.unreachable(address, "nobody listens")
        else:
            self.fabric.dialled(address, self.connect(*pipes))
            self.flush()

    def tell_time(self) -> None:
        """Let its clock show what time it is."""
        self.service.now_ns = self.mesh.now_ns
        self.service.wall_ns = 1_800_000_000 * SECOND_NS + self.mesh.now_ns

    def tick(self) -> None:
        """Do what time brings."""
        self.tell_time()
        self._ticks += 1
        if self._ticks % 20 == 0:
            for peer in sweep(self.service):
                leave(peer)
        due = self.fabric.tick()
        self.flush()
        for address in due:
            self.dial(address)

    def flush(self) -> None:
        """End the turn, and the connections that are over."""
        ended = [peer for peer in self.service.ending if peer.number in self._ends]
        super().flush()
        for peer in ended:
            end = self._ends[peer.number]
            if isinstance(end, Pipe):
                end.is_over = True
            leave(peer)

    def _lose(self, peer: Peer) -> None:
        end = self._ends[peer.number]
        if isinstance(end, Pipe):
            end.is_over = True
        leave(peer)
        self.flush()


class Net:
    """All gateways, and the connections between them."""

    def __init__(self, seed: int = 1) -> None:
        self.now_ns = 1000 * SECOND_NS
        self.chance = Random(seed)
        self.skew_ns: dict[int, int] = {}
        # By place; the others are called after their numbers.
        self.names: dict[int, str] = {}
        self.nodes: dict[int, Node] = {}
        self.sites: dict[str, Site] = {}
        self.pipes: list[Pipe] = []
        # Pairs of addresses that cannot reach each other.
        self.apart: set[frozenset[str]] = set()

    def __getitem__(self, place: int) -> Node:
        return self.nodes[place]

    def begin(
        self,
        place: int,
        rules: Rules | None = None,
        *,
        number: int = 0,
        admission: Admission | None = None,
    ) -> Node:
        """Start a gateway at a place, where one may have been before; its number is the place's."""
        node = Node(
            self,
            place,
            number or place,
            rules or Rules(join=(address_of(1),)),
            admission or admission_of(place),
        )
        self.nodes[place] = node
        self.sites[node.address] = node
        return node

    def kill(self, place: int, *, is_dark: bool = False) -> None:
        """End a gateway without a word; `is_dark`: and nobody is told that it has ended."""
        node = self.nodes.pop(place)
        node.is_up = False
        del self.sites[node.address]
        for pipe in self.pipes:
            if node.address in (pipe.source, pipe.target):
                pipe.is_over = not is_dark
                pipe.is_dead = is_dark or pipe.target == node.address
                pipe.data.clear()

    def connect(self, source: str, target: str) -> tuple[Pipe, Pipe] | None:
        """Connect two addresses; the pipes to and from the second, which accepts them."""
        site = self.sites.get(target)
        if site is None or frozenset((source, target)) in self.apart:
            return None
        there, back = Pipe(source, target), Pipe(target, source)
        self.pipes += [there, back]
        site.accept(back, there)
        return there, back

    def between(self, one: int, other: int) -> list[Pipe]:
        """The pipes between two places, in both directions."""
        places = {address_of(one), address_of(other)}
        return [pipe for pipe in self.pipes if {pipe.source, pipe.target} == places]

    def cut(self, one: int, other: int) -> None:
        """Let nothing through between two places, in silence, until they are joined."""
        self.apart.add(frozenset((address_of(one), address_of(other))))
        for pipe in self.between(one, other):
            pipe.is_dead = True
            pipe.data.clear()

    def join(self, one: int, other: int) -> None:
        """Let two places be reached from each other again, by new connections."""
        self.apart.discard(frozenset((address_of(one), address_of(other))))

    def carry(self) -> None:
        """Carry everything that is on its way, until nothing is."""
        while sum(pipe.carry() for pipe in self.pipes if not pipe.is_dead):
            pass
        self.pipes = [pipe for pipe in self.pipes if not pipe.is_dead]

    def wait(self, seconds: float) -> None:
        """Let time pass everywhere, and carry what it brings."""
        for _ in range(max(1, round(seconds * SECOND_NS / TICK_NS))):
            self.now_ns += TICK_NS
            for node in list(self.nodes.values()):
                node.tick()
            self.carry()

    def is_whole(self) -> bool:
        """Say if every gateway knows a way to every other, and what it wants."""
        numbers = {node.number for node in self.nodes.values()}
        return all(
            node.knows() == numbers - {node.number}
            and all(member.is_current for member in node.fabric.members.there())
            for node in self.nodes.values()
        )


class _Door:
    """Closes the connection behind a peer that is given up."""

    def __init__(self, outgoing: Pipe) -> None:
        self._outgoing = outgoing

    def fall_behind(self) -> None:
        """Everything is drawn at the end of the turn."""

    def press(self) -> None:
        """Nothing waits for long."""

    def resume(self) -> None:
        """Nobody is held here."""

    def finish(self) -> None:
        """Everything was sent: close."""
        self._outgoing.is_over = True

    def abort(self) -> None:
        """Close at once."""
        self._outgoing.is_over = True


def address_of(place: int) -> str:
    """Where the gateway of a place can be reached."""
    return f"10.0.0.{place}:7411"


def identity_of(place: int) -> Signer:
    """Who the gateway of a place is, in every life."""
    return Signer(place.to_bytes(32, "big"))


def admission_of(place: int, secret: bytes = SECRET) -> Admission:
    """What lets the gateway of a place into the mesh."""
    return Admission(identity_of(place), verify, secret)


def meshed(count: int, rules: Rules | None = None) -> Net:
    """A mesh of so many gateways that have found each other."""
    net = Net()
    for place in range(1, count + 1):
        net.begin(place, rules)
    net.wait(3)
    assert net.is_whole()
    return net
