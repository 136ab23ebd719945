"""Sending side of the mesh: each message once per link, numbered for each destination.

A link whose backlog is full gets no more messages, so that control messages still have room. The
skipped frames are retransmitted like lost ones.
"""

from weft.broker.delivery.outbox import Outbox
from weft.broker.delivery.policy import Policy
from weft.broker.mesh_hooks import Beyond
from weft.broker.routing.route import Group, Route
from weft.broker.service import Service
from weft.mesh.counters import TrafficCounts
from weft.mesh.delivery.remote_gateway import RemoteGateway
from weft.mesh.delivery.retransmit_buffer import RetransmitBuffer, SentFrames
from weft.mesh.protocol import Gone, HighWaterMark, RoutedWord, frame_of
from weft.mesh.routing.forward_header import (
    AGAIN,
    COUNT_AT,
    ENTRY_BYTES,
    GROUP,
    INTEREST,
    ONE,
    PLAIN,
    TRACE,
    WORD,
    PlannedGateway,
    make,
    read,
)
from weft.mesh.routing.forwarding_tree import Branch, ForwardingPlan, Ways
from weft.mesh.trace.hop import NO_WAY, SHED, Sprout
from weft.wire.byteops import put_u32, put_u64, u32_at
from weft.wire.frames import Kind

_CUT = int(Policy.CUT)
_MESSAGE = int(Kind.MESSAGE)
_ERROR = int(Kind.ERROR)
# Bound on cached forwarding plans; at the limit the cache is cleared.
_PLANS_MAX = 4096


class MeshSender(Beyond):
    """Frames sent by this gateway or forwarded for others."""

    def __init__(self, service: Service, counts: TrafficCounts) -> None:
        self.service = service
        self.own = service.stamp.origin
        self.arena = service.arena
        self.counts = counts
        self.distants: dict[int, RemoteGateway] = {}
        self.ways = Ways(self.own, {}, {})
        self.ring = RetransmitBuffer()
        # Version of the routes, which invalidates older forwarding plans.
        self.version = 1
        self._plans: dict[tuple[int, ...], ForwardingPlan] = {}

    def go_by(self, ways: Ways) -> None:
        """Replace the routes."""
        self.ways = ways
        self.forget_plans()

    def forget_plans(self) -> None:
        """Invalidate all forwarding plans."""
        self.version += 1
        self._plans.clear()

    def spread(self, route: Route, start: int, end: int, count: int) -> Outbox | None:
        """Send stamped messages of one subject to the gateways of its route.

        Return the outbox of a link above its high-water mark, or None.
        """
        crowded: Outbox | None = None
        plan: ForwardingPlan | None = route.plan
        if plan is None or plan.version != self.version:
            plan = self._plan(route)
        if plan.branches:
            crowded = self._send(plan.branches, start, end, count)
        if route.far_groups:
            crowded = self._share(route, start, end) or crowded
        return crowded

    def push(self, link: Outbox, header: bytearray, start: int, end: int) -> bool:
        """Queue frames of the arena behind a forwarding header; False if the backlog is full."""
        length = len(header)
        if link.cost() + link.pending + length + end - start > link.bounds.drop_bytes:
            self.counts.shed += u32_at(header, COUNT_AT)
            return False
        at = self.arena.put(header)
        if at >= 0:
            link.push(at, length, _CUT)
        else:
            link.hold(bytes(header), self.service.now_ns)
        link.push(start, end - start, _CUT)
        return True

    def post(self, number: int, frames: bytes) -> None:
        """Send frames to one gateway that are addressed to single receivers there."""
        distant = self.distants.get(number)
        at, count = 0, 0
        while at < len(frames):
            if frames[at + 4] not in (_MESSAGE, _ERROR):
                raise ValueError(
                    f"a frame of kind {frames[at + 4]} has no receiver at another gateway"
                )
            at += u32_at(frames, at)
            count += 1
        if distant is None or not count:
            return
        branches = self.ways.branches(ONE, b"", [distant])
        start = self.arena.put(frames)
        if start >= 0:
            self._send(branches, start, self.arena.fill, count)
        else:
            self._send_apart(branches, frames, count)

    def say(self, number: int, word: RoutedWord) -> bool:
        """Send a control message to any gateway; False if it is unreachable."""
        distant = self.distants.get(number)
        if distant is None:
            return False
        branch = self.ways.branches(WORD, b"", [distant])[0]
        # The link may have closed without a notification so far.
        peer = None if branch.link is None else branch.link.owner
        if peer is None:
            return False
        put_u32(branch.header, COUNT_AT, 1)
        frames = bytes(branch.header) + frame_of(word)
        # Control messages are bounded only by the limit of the link itself.
        if isinstance(word, HighWaterMark | Gone):
            # Refers to messages sent before it.
            peer.owe(frames)
        else:
            peer.owe_first(frames)
        return True

    def trace(self, distants: list[RemoteGateway], word: RoutedWord) -> list[Sprout]:
        """Send a trace along the paths of messages for these gateways; each hop handles it.

        It is subject to the same backlog limit as messages.
        """
        found: list[Sprout] = []
        frame = frame_of(word)
        for branch in self.ways.branches(WORD | TRACE, b"", distants):
            put_u32(branch.header, COUNT_AT, 1)
            planned = read(branch.header)
            heard = [entry._replace(is_for=True) for entry in planned.entries]
            header = make(planned.flags, b"", [self.own], heard)
            put_u32(header, COUNT_AT, 1)
            reason = ""
            if branch.link is None:
                reason = NO_WAY
            elif not self._push_apart(branch.link, header, frame):
                reason = SHED
            found.append(Sprout(planned, reason))
        return found

    def answer(self, way: list[int], word: RoutedWord) -> bool:
        """Send a control message back along a path; False if its first link is gone."""
        link = self.ways.links.get(way[0])
        peer = None if link is None else link.owner
        if peer is None:
            return False
        last = len(way) - 1
        entries = [PlannedGateway(number, last - at, at == last) for at, number in enumerate(way)]
        header = make(WORD, b"", [self.own], entries)
        put_u32(header, COUNT_AT, 1)
        peer.owe_first(bytes(header) + frame_of(word))
        return True

    def send_again(self, number: int, piece: SentFrames) -> bool:
        """Retransmit frames to a gateway; False if that is impossible now."""
        distant = self.distants.get(number)
        if distant is None:
            return False
        for branch in self.ways.branches(piece.flags | AGAIN, piece.group, [distant]):
            if branch.link is None:
                return False
            put_u32(branch.header, COUNT_AT, piece.frame_count)
            entry = len(branch.header) - ENTRY_BYTES
            branch.header[entry + 6 : entry + 8] = piece.mark.to_bytes(2, "little")
            put_u64(branch.header, entry + 8, piece.first)
            if not self._push_apart(branch.link, branch.header, piece.frames):
                return False
        self.counts.resent += piece.frame_count
        return True

    def _plan(self, route: Route) -> ForwardingPlan:
        distants = [self.distants[outbox.owner.number] for outbox in route.far]
        key = tuple([distant.number for distant in distants])
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= _PLANS_MAX:
                self._plans.clear()
            plan = ForwardingPlan(self.version, self.ways.branches(PLAIN | INTEREST, b"", distants))
            self._plans[key] = plan
        route.plan = plan
        return plan

    def _send(self, branches: list[Branch], start: int, end: int, count: int) -> Outbox | None:
        crowded: Outbox | None = None
        ring = self.ring
        ring.begin(self.service.now_ns)
        for each in branches:
            branch = each
            branch.count(count)
            ring.add(branch.header)
            if branch.link is not None:
                self.push(branch.link, branch.header, start, end)
                if branch.link.is_crowded:
                    crowded = branch.link
        ring.finish(self.arena.data, start, end)
        self.counts.sent += count
        return crowded

    def _send_apart(self, branches: list[Branch], frames: bytes, count: int) -> None:
        """Send frames that do not fit into the arena."""
        self.ring.begin(self.service.now_ns)
        for branch in branches:
            branch.count(count)
            self.ring.add(branch.header)
            if branch.link is not None:
                self._push_apart(branch.link, branch.header, frames)
        self.ring.finish(bytearray(frames), 0, len(frames))
        self.counts.sent += count

    def _push_apart(self, link: Outbox, header: bytearray, frames: bytes) -> bool:
        if link.cost() + link.pending + len(header) + len(frames) > link.bounds.drop_bytes:
            self.counts.shed += u32_at(header, COUNT_AT)
            return False
        link.hold(bytes(header) + frames, self.service.now_ns)
        return True

    def _share(self, route: Route, start: int, end: int) -> Outbox | None:
        """Send each message to one gateway per queue group that has only remote members."""
        crowded: Outbox | None = None
        while start < end:
            size = u32_at(self.arena.data, start)
            for group in route.far_groups:
                distant = self.distants[_pick(group).owner.number]
                branches = self.ways.branches(GROUP, group.name, [distant])
                crowded = self._send(branches, start, start + size, 1) or crowded
            start += size
        return crowded


def _pick(group: Group) -> Outbox:
    """Return the next gateway of a group, a reachable one if possible."""
    for _ in group.members:
        outbox: Outbox = group.members[group.pick(None)]
        if not outbox.is_away:
            break
    return outbox
