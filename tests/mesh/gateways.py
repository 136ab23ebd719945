"""Gateways without sockets, clocks or a control plane: a test carries what links have to carry."""

from typing import Protocol

from tests.broker.talk import NotedDoor, connect, subscribe

from weft.broker.delivery.outbox import Outbox
from weft.broker.disconnect import withdraw_ended
from weft.broker.ingest import READ_BYTES, drop_large, feed, took_large
from weft.broker.limits import Limits
from weft.broker.service import Peer, Service
from weft.mesh.delivery.traffic import Traffic
from weft.mesh.protocol import InterestEntry
from weft.wire.frames import Decoder, Frame, Kind, encode, parse

SECOND_NS = 1_000_000_000
MS_NS = 1_000_000


class End(Protocol):
    """Whatever takes what a gateway sends to one peer."""

    is_stalled: bool

    def took(self, data: bytes) -> None:
        """The gateway sends bytes."""


class Local:
    """Someone who is connected to one gateway."""

    def __init__(self, gateway: "Gateway", peer: Peer) -> None:
        self.gateway = gateway
        self.peer = peer
        self.is_stalled = False
        self._decoder = Decoder(64 << 20)

    def say(self, *frames: bytes) -> None:
        """Send frames in one read."""
        self.gateway.read(self.peer, b"".join(frames))

    def publish(self, subject: bytes, *bodies: bytes, reply: bytes = b"", flags: int = 0) -> None:
        """Publish messages."""
        self.say(*(encode(Kind.MESSAGE, subject, body, reply, flags) for body in bodies))

    def took(self, data: bytes) -> None:
        """Bytes come to it."""
        self._decoder.feed(data)

    def frames(self) -> list[Frame]:
        """What it heard since the last time."""
        return [parse(frame) for frame in iter(self._decoder.next_frame, None)]

    def messages(self) -> list[bytes]:
        """The bodies of the messages that it heard since the last time."""
        return [frame.body for frame in self.frames() if frame.kind == Kind.MESSAGE]


class Wire:
    """One direction of a link: what is on its way."""

    def __init__(self, sender: "Gateway", receiver: "Gateway") -> None:
        self.sender = sender
        self.receiver = receiver
        self.peer: Peer
        self.data = bytearray()
        self.carried = bytearray()
        self.is_cut = False
        self.is_stalled = False

    def took(self, data: bytes) -> None:
        """The gateway at its beginning sends bytes."""
        if not self.is_cut:
            self.data += data

    def frames(self, kind: Kind) -> list[Frame]:
        """Those of a kind that were carried so far."""
        decoder = Decoder(64 << 20)
        decoder.feed(bytes(self.carried))
        return [
            frame for each in iter(decoder.next_frame, None) if (frame := parse(each)).kind == kind
        ]


class Gateway:
    """One gateway."""

    def __init__(
        self, number: int, limits: Limits | None = None, *, is_relay: bool = True, name: str = ""
    ) -> None:
        self.number = number
        self.service = Service("weather", name or f"gateway-{number}", number, limits or Limits())
        self.service.now_ns = 1000 * SECOND_NS
        self.service.wall_ns = 1_800_000_000 * SECOND_NS
        self.traffic = Traffic(self.service, is_relay=is_relay)
        self.links: dict[int, Peer] = {}
        self._ends: dict[int, End] = {}

    def local(self, *patterns: bytes, group: bytes = b"") -> Local:
        """Someone who connects and subscribes."""
        peer = self.service.join(0xABC, NotedDoor())
        local = Local(self, peer)
        self._ends[peer.number] = local
        local.say(connect(), *(subscribe(pattern, group=group, flags=0) for pattern in patterns))
        local.frames()
        return local

    def link(self, other: "Gateway", wire: Wire) -> None:
        """Take up one end of a link."""
        peer = self.service.join(other.number, NotedDoor())
        peer.is_greeted = True
        peer.run = self.service.link_run
        peer.carrier = self.traffic.carrier(other.number, peer)
        self.links[other.number] = peer
        self._ends[peer.number] = wire

    def read(self, peer: Peer, data: bytes) -> None:
        """Deal with bytes that a peer sent, and end the turn."""
        while data and not peer.is_over:
            count = len(peer.large) - peer.large_fill if peer.large_size > 0 else READ_BYTES
            self._read(peer, data[:count])
            data = data[count:]
            self.flush()

    def _read(self, peer: Peer, data: bytes) -> None:
        arena = self.service.arena
        if peer.large_size == 0:
            start = arena.put(peer.rest + data)
            feed(peer, start, arena.fill)
            return
        peer.large[peer.large_fill : peer.large_fill + len(data)] = data
        if took_large(peer, len(data)):
            start = arena.put(peer.large)
            drop_large(peer)
            feed(peer, start, arena.fill)

    def flush(self) -> None:
        """End the turn."""
        arena = self.service.arena
        withdraw_ended(self.service)
        position = 0
        while position < len(arena.waiting):
            outbox: Outbox = arena.waiting[position]
            position += 1
            outbox.settle(self.service.now_ns)
            if outbox.owner is None:
                continue
            if outbox.is_distant:
                outbox.owner.door.fall_behind()
            else:
                end = self._ends[outbox.owner.number]
                while outbox.is_behind() and not end.is_stalled:
                    end.took(outbox.draw(1 << 20, self.service.now_ns))
        arena.reset()

    def go_on(self) -> None:
        """Send what links did not take while they were stalled."""
        for peer in self.links.values():
            end = self._ends[peer.number]
            while peer.outbox.is_behind() and not end.is_stalled:
                end.took(peer.outbox.draw(1 << 20, self.service.now_ns))

    def wait(self, ms: int) -> None:
        """Let time pass in small steps."""
        for _ in range(max(1, ms // 50)):
            self.service.now_ns += 50 * MS_NS
            self.traffic.tick()
            self.flush()


class Mesh:
    """Gateways and the links between them; its tests say who knows what of whom, and when."""

    def __init__(
        self,
        edges: list[tuple[int, int]],
        *,
        is_relay: bool = True,
        limits: Limits | None = None,
    ) -> None:
        numbers = sorted({number for edge in edges for number in edge})
        self.gateways = {number: Gateway(number, limits, is_relay=is_relay) for number in numbers}
        self.edges = {(min(edge), max(edge)) for edge in edges}
        self.known_edges = set(self.edges)
        self.wires: dict[tuple[int, int], Wire] = {}
        for left, right in self.edges:
            for one, other in ((left, right), (right, left)):
                wire = Wire(self[one], self[other])
                self.wires[(one, other)] = wire
                self[one].link(self[other], wire)
        for one in numbers:
            for other in numbers:
                self[one].traffic.meet(other, f"gateway-{other}")
        self.plot()

    def __getitem__(self, number: int) -> Gateway:
        return self.gateways[number]

    def plot(self, *numbers: int) -> None:
        """Tell gateways, or all of them, how the links lie now."""
        for number in numbers or self.gateways:
            gateway = self[number]
            links = {
                other: peer
                for other, peer in gateway.links.items()
                if (min(number, other), max(number, other)) in self.edges
            }
            gateway.traffic.plot(self._parents(number), links, frozenset(self.known_edges))

    def cut(self, left: int, right: int, *, is_known: bool = True) -> None:
        """Lose a link and everything on it."""
        self.edges.discard((min(left, right), max(left, right)))
        for pair in ((left, right), (right, left)):
            self.wires[pair].is_cut = True
            self.wires[pair].data.clear()
        if is_known:
            self.plot()

    def mend(self, left: int, right: int) -> None:
        """Have a link again: a new one."""
        self.edges.add((min(left, right), max(left, right)))
        for one, other in ((left, right), (right, left)):
            wire = Wire(self[one], self[other])
            self.wires[(one, other)] = wire
            self[one].link(self[other], wire)
        self.plot()

    def settle(self) -> None:
        """Tell everyone what everyone wants, and carry everything that is on its way."""
        self.tell_interest()
        self.carry()

    def tell_interest(self) -> None:
        """Tell everyone what everyone wants."""
        for number, gateway in self.gateways.items():
            changes = gateway.traffic.local_changes()
            added = [wanted for wanted, is_added in changes if is_added]
            removed = [wanted for wanted, is_added in changes if not is_added]
            for other, distant in self.gateways.items():
                if other != number:
                    distant.traffic.want(number, added, removed)

    def carry(self, piece_bytes: int = 1 << 20) -> None:
        """Carry everything that is on its way, until nothing is."""
        while any(wire.data for wire in self.wires.values()):
            for wire in list(self.wires.values()):
                piece = bytes(wire.data[:piece_bytes])
                if piece:
                    del wire.data[:piece_bytes]
                    wire.carried += piece
                    peer = wire.receiver.links[wire.sender.number]
                    wire.receiver.read(peer, piece)

    def wait(self, ms: int) -> None:
        """Let time pass everywhere, and carry what it brings."""
        for _ in range(max(1, ms // 50)):
            for gateway in self.gateways.values():
                gateway.wait(50)
            self.carry()

    def _parents(self, root: int) -> dict[int, int]:
        parents: dict[int, int] = {}
        frontier = [root]
        while frontier:
            following = []
            for number in frontier:
                for left, right in sorted(self.edges):
                    other = right if left == number else left if right == number else 0
                    if other and other != root and other not in parents:
                        parents[other] = number
                        following.append(other)
            frontier = following
        return parents


def wanted(pattern: bytes, group: bytes = b"", *, is_listener: bool = False) -> InterestEntry:
    """What a gateway wants."""
    return InterestEntry(pattern, group, is_listener)
