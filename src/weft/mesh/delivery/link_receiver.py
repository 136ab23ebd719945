"""Reader of one link: forwarding headers with their frames, and control messages.

A forwarding header names this gateway first. Its frames are delivered here, forwarded on other
links, or both. They may span several reads and are forwarded as they arrive, without matching their
subjects.
"""

from typing import Protocol

from weft.broker.mesh_hooks import Carrier
from weft.broker.service import Peer
from weft.errors import BadFrame, UnexpectedFrame
from weft.mesh.delivery.frame_batch import Load
from weft.mesh.delivery.origin_stream import Incoming
from weft.mesh.delivery.receiver import Arrivals
from weft.mesh.delivery.sender import MeshSender
from weft.mesh.links.link_events import error_in
from weft.mesh.routing.forward_header import (
    COUNT_AT,
    ENTRIES_AT,
    ENTRY_BYTES,
    HOPS_AT,
    HOPS_MAX,
    INTEREST,
    TRACE,
    WORD,
    PlannedGateway,
    check,
    make,
    read,
)
from weft.mesh.routing.forwarding_tree import OnwardBranch
from weft.mesh.trace.hop import NO_RELAY, NO_WAY, TOO_FAR, TracedHop
from weft.wire.byteops import cut, put_bytes, put_u32, u32_at, u64_at
from weft.wire.frames import HEADER_BYTES, Kind, Run, encode, parse

_HEADER = HEADER_BYTES
_ENTRY = ENTRY_BYTES
_COUNT = COUNT_AT
_ENTRIES = ENTRIES_AT
_HOPS = HOPS_AT
_HOPS_MAX = HOPS_MAX
_WORD = WORD
_INTEREST = INTEREST
# Bound on stream numbers, so that the following ones do not overflow.
_NUMBER_MAX = (1 << 64) - (1 << 33)
_TRACE = TRACE
_MESSAGE = int(Kind.MESSAGE)
_ERROR = int(Kind.ERROR)
_PING = int(Kind.PING)
_PONG = int(Kind.PONG)
_GOODBYE = int(Kind.GOODBYE)
_FORWARD = int(Kind.FORWARD)
_FABRIC = int(Kind.FABRIC)


class LinkHandler(Protocol):
    """Checks forwarding headers and handles control messages."""

    @property
    def is_relay(self) -> bool:
        """Whether messages are forwarded for other gateways."""

    def problem(self, header: bytes, sender: int) -> str:
        """Return why the path of a checked forwarding header is rejected; empty if it is not."""

    def hear_near(self, peer: Peer, body: bytes) -> None:
        """Handle a control message of the neighbour on a link."""

    def hear_far(self, origin: int, body: bytes, path: bytes) -> None:
        """Handle a forwarded control message; `path` is encoded as in its header."""

    def hear_trace(self, origin: int, body: bytes, passage: TracedHop) -> None:
        """Handle a trace after it was forwarded; `passage` says how."""

    def part_near(self, peer: Peer) -> None:
        """Handle the end of a link."""


class LinkCarrier(Carrier):
    """Receiver of the frames of one link."""

    def __init__(
        self,
        peer: Peer,
        number: int,
        outgoing: MeshSender,
        arrivals: Arrivals,
        listener: LinkHandler,
    ) -> None:
        self._peer = peer
        self._number = number
        self._outgoing = outgoing
        self._arrivals = arrivals
        self._listener = listener
        # Current forwarding header: remaining frames, and their destinations.
        self._left = 0
        self._load = Load()
        self._number_here = 0
        self._is_for_here = False
        self._path = b""
        self._incoming: Incoming | None = None
        self._parts: list[OnwardBranch] = []
        self._passage: TracedHop | None = None

    def take(self, run: Run) -> None:
        """Handle a batch of frames."""
        kind = run.kind
        if self._left > 0:
            if kind not in (_MESSAGE, _ERROR, _FABRIC):
                raise UnexpectedFrame(f"{self._left} frames of a forwarding header are missing")
            if run.count > self._left:
                self._split(run)
            else:
                self._carry(run)
        elif kind == _FORWARD:
            if run.count != 1:
                raise UnexpectedFrame("a forwarding header without frames")
            self._open(cut(self._outgoing.arena.data, run.start, run.end))
        elif kind == _FABRIC:
            self._hear(run, True)
        elif kind == _PING:
            self._peer.owe(encode(_PONG))
        elif kind in (_GOODBYE, _ERROR):
            self._end(run)
        elif kind != _PONG:
            raise UnexpectedFrame(f"a gateway does not send frames of kind {kind}")

    def part(self) -> None:
        """Handle the end of the link."""
        self._listener.part_near(self._peer)

    def _end(self, run: Run) -> None:
        """Close the link as the neighbour requests, with its error if there is one."""
        error = None
        if run.kind == _ERROR:
            data = self._outgoing.arena.data
            frame = cut(data, run.start, run.start + u32_at(data, run.start))
            error = error_in(parse(frame).body)
        self._peer.end(error)

    def _split(self, run: Run) -> None:
        """Handle a batch that begins with the last frames of a header.

        A control message of the neighbour may follow, in a frame of the same kind.
        """
        data = self._outgoing.arena.data
        count, end, at = run.count, run.end, run.start
        left = self._left
        for _ in range(left):
            at += u32_at(data, at)
        run.count, run.end = left, at
        self._carry(run)
        run.start, run.end, run.count = at, end, count - left
        if not self._peer.is_over:
            self.take(run)

    def _open(self, header: bytes) -> None:
        """Read a forwarding header."""
        check(header)
        load = self._load
        load.flags = header[5]
        load.origin = u32_at(header, 8)
        load.group = cut(header, _HEADER, _HEADER + header[7])
        self._left = u32_at(header, _COUNT)
        self._incoming = None
        self._is_for_here = False
        self._parts = []
        self._passage = None
        problem = self._listener.problem(header, self._number)
        if problem:
            # Its frames still arrive, and are dropped.
            self._outgoing.counts.refuse(problem, self._left)
            return
        at = _HEADER + header[7] + 4 * header[_HOPS]
        if u32_at(header, at) != self._outgoing.own:
            raise BadFrame("a forwarding header for another gateway")
        self._number_here = u64_at(header, at + 8)
        if self._number_here > _NUMBER_MAX:
            self._outgoing.counts.refuse("BadNumber", self._left)
            return
        self._is_for_here = header[at + 6] != 0
        if load.flags & _TRACE:
            self._passage = TracedHop(header)
        elif self._is_for_here:
            self._open_here(header, at)
        end = len(header)
        at += _ENTRY
        while at < end:
            below = header[at + 4] + 256 * header[at + 5]
            part_end = at + _ENTRY * (below + 1)
            if part_end > end:
                # A relaying gateway checks only its own branches of the plan.
                self._outgoing.counts.refuse("BadTree", self._left)
                self._incoming = None
                self._is_for_here = False
                self._parts = []
                return
            self._open_part(header, at, part_end)
            at = part_end

    def _open_here(self, header: bytes, at: int) -> None:
        """Prepare local delivery: the stream and interest mark of the frames."""
        load = self._load
        if load.flags & _WORD:
            self._path = cut(header, _HEADER + header[7], at)
            return
        load.mark = header[at + 6] + 256 * header[at + 7] if load.flags & _INTEREST else 0
        self._incoming = self._arrivals.stream(load.origin, self._number_here)

    def _open_part(self, header: bytes, at: int, end: int) -> None:
        """Forward a branch of the plan on its link."""
        if not self._listener.is_relay:
            self._outgoing.counts.refuse(NO_RELAY, self._left)
            if self._passage is not None:
                self._passage.stopped(header, at, end, NO_RELAY)
            return
        link = self._outgoing.ways.links.get(u32_at(header, at))
        if link is None or header[_HOPS] >= _HOPS_MAX:
            self._detour(header, at, end)
            return
        path_end = _HEADER + header[7] + 4 * header[_HOPS]
        length = path_end + 4 + end - at
        made = bytearray(length)
        put_bytes(made, 0, header, 0, path_end)
        put_u32(made, 0, length)
        entries = (end - at) // _ENTRY
        made[_ENTRIES] = entries & 255
        made[_ENTRIES + 1] = entries >> 8
        made[_HOPS] = header[_HOPS] + 1
        put_u32(made, path_end, self._outgoing.own)
        put_bytes(made, path_end + 4, header, at, end - at)
        self._parts.append(OnwardBranch(link, made))

    def _detour(self, header: bytes, at: int, end: int) -> None:
        """Forward a branch whose link is lost on other paths."""
        envelope = read(header)
        first = (at - (len(header) - _ENTRY * len(envelope.entries))) // _ENTRY
        path = [*envelope.path, self._outgoing.own]
        ways = self._outgoing.ways
        is_far = len(path) >= _HOPS_MAX
        for entry in envelope.entries[first : first + (end - at) // _ENTRY]:
            if not entry.is_for:
                continue
            way = ways.to(entry.number)
            if not way or is_far or not set(path).isdisjoint(way):
                self._outgoing.counts.dropped += self._left
                if self._passage is not None:
                    self._passage.missed(entry.number, TOO_FAR if is_far else NO_WAY)
                continue
            entries = [
                PlannedGateway(
                    number, len(way) - step - 1, number == entry.number, entry.first, entry.mark
                )
                for step, number in enumerate(way)
            ]
            made = make(envelope.flags, envelope.group, path, entries)
            self._parts.append(OnwardBranch(ways.links[way[0]], made))

    def _carry(self, run: Run) -> None:
        """Deliver and forward frames of the current header."""
        count = run.count
        self._left -= count
        if self._incoming is not None:
            load = self._load
            load.number = self._number_here
            load.start, load.end, load.count = run.start, run.end, count
            self._arrivals.arrive(self._incoming, load)
            self._number_here += count
        elif self._is_for_here and self._passage is None:
            self._hear(run, False)
        for each in self._parts:
            part = each
            part.count(count)
            is_taken = self._outgoing.push(part.link, part.header, run.start, run.end)
            if is_taken:
                self._outgoing.counts.passed_on += count
            if self._passage is not None:
                self._passage.went(part.header, is_taken)
            part.go_on(count)
        if self._is_for_here and self._passage is not None:
            # After forwarding: the result reports how it was forwarded.
            self._hear(run, False)

    def _hear(self, run: Run, is_near: bool) -> None:
        """Handle control messages, of the neighbour or forwarded."""
        data = self._outgoing.arena.data
        at = run.start
        while at < run.end and not self._peer.is_over:
            size = u32_at(data, at)
            body = cut(data, at + _HEADER + data[at + 6] + data[at + 7], at + size)
            if is_near:
                self._listener.hear_near(self._peer, body)
            elif self._passage is not None:
                self._listener.hear_trace(self._load.origin, body, self._passage)
            else:
                self._listener.hear_far(self._load.origin, body, self._path)
            at += size
