"""Pairs of connections with a lane, and the control messages relayed between them.

Two connections that were never offered a lane cannot reach each other by this.
"""

from typing import Any

from weft.broker.auth.permissions import may_not
from weft.broker.delivery.policy import Policy
from weft.broker.publish import reserved_flags, wrong_reply
from weft.broker.rate_limit import spend
from weft.broker.requests import is_own_inbox
from weft.broker.service import Peer, Service
from weft.errors import BadOption, BadSubject, WeftError
from weft.lanes.eligibility import may_publish, may_request
from weft.wire.byteops import cut, put_u32, u32_at
from weft.wire.frames import HEADER_BYTES, RESERVED_FLAGS, Flag
from weft.wire.lane_messages import lane_frame
from weft.wire.message.message import Message
from weft.wire.subjects import is_subject

# Time for which late messages of a lane that both ends have ended are relayed.
LINGER_NS = 60_000_000_000
# Lanes in one control message.
PEERS_MAX = 1024

_HEADER = HEADER_BYTES
_CUT = int(Policy.CUT)
_REQUEST = int(Flag.REQUEST)
_INBOX = b"_INBOX."


class Pair:
    """Two connections that were offered a lane."""

    def __init__(self) -> None:
        # Numbers of the ends that have ended it.
        self.ended: set[int] = set()
        # A lane was opened, not only offered.
        self.is_used = False
        # When it ended, and is kept only for late messages; 0: it has not.
        self.over_ns = 0


class LanePairs:
    """Lanes of a service, each between two connections."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._pairs: dict[int, dict[int, Pair]] = {}

    def __len__(self) -> int:
        return sum([not pair.over_ns for pair in self._all()])

    def open(self, one: Peer, other: Peer) -> None:
        """Allow two connections to exchange control messages about a lane."""
        pair = self._get(one.number, other.number) or Pair()
        pair.ended.clear()
        pair.over_ns = 0
        self._pairs.setdefault(one.number, {})[other.number] = pair
        self._pairs.setdefault(other.number, {})[one.number] = pair

    def use(self, one: Peer, other: Peer) -> None:
        """Record that a lane is in use."""
        pair = self._get(one.number, other.number)
        if pair is not None:
            pair.is_used = True
            pair.over_ns = 0

    def abandon(self, one: Peer, other: Peer) -> None:
        """Forget an offer that was not taken after a while, unless there was a lane before."""
        pair = self._get(one.number, other.number)
        if pair is not None and not pair.is_used:
            pair.over_ns = self._service.now_ns

    def close(self, one: Peer, other: Peer, reason: str) -> None:
        """Order both ends to close their lane, and stop relaying between them."""
        if self._get(one.number, other.number) is not None:
            self._forget(one.number, other.number)
            one.owe(lane_frame("over", peer=other.number, reason=reason, gone=False))
            other.owe(lane_frame("over", peer=one.number, reason=reason, gone=False))

    def part(self, peer: Peer, reason: str) -> None:
        """Notify the other ends of all lanes of a peer that has ended."""
        for number in list(self._pairs.get(peer.number, ())):
            self._forget(peer.number, number)
            other = self._service.peers.get(number)
            if other is not None:
                other.owe(lane_frame("over", peer=peer.number, reason=reason, gone=True))

    def tick(self) -> None:
        """Forget pairs that ended more than 60 s ago."""
        oldest_ns = self._service.now_ns - LINGER_NS
        for number, others in list(self._pairs.items()):
            for other, pair in list(others.items()):
                if pair.over_ns and pair.over_ns < oldest_ns:
                    self._forget(number, other)

    def switch(self, peer: Peer, facts: Message) -> None:
        """Relay where in its stream a peer switches between the gateway and lanes."""
        peers, lanes = facts.get_list("peers"), facts.get_list("lanes")
        numbers = facts.get_list("numbers")
        if not len(peers) == len(lanes) == len(numbers) <= PEERS_MAX:
            raise BadOption(
                f"{len(peers)} peers, {len(lanes)} lanes and {len(numbers)} numbers: there must be"
                f" as many of each, at most {PEERS_MAX}"
            )
        if not all(type(each) is int for each in [*peers, *lanes, *numbers]):
            raise BadOption("peers, lanes and numbers are lists of int64")
        # The frame itself is charged already.
        spend(peer, len(peers))
        for number, lane, step in zip(peers, lanes, numbers, strict=True):
            other = self._other(peer, number)
            if other is not None:
                other.owe(lane_frame("switch", peer=peer.number, lane=lane, number=step))

    def tail(self, peer: Peer, facts: Message) -> None:
        """Relay that the rest of a lane's messages follows through the gateway."""
        start, lane = facts.get_int64("from"), facts.get_int64("lane")
        other = self._other(peer, facts.get_int64("peer"))
        if other is not None:
            # `from` is a keyword of Python.
            facts_of_tail: dict[str, Any] = {"peer": peer.number, "lane": lane, "from": start}
            other.owe(lane_frame("tail", **facts_of_tail))

    def end(self, peer: Peer, facts: Message) -> None:
        """Relay that a peer ended a lane; the lane is over once both ends have sent this.

        If there is no such lane, the peer is notified: it would wait for the other end forever.
        """
        number, lane = facts.get_int64("peer"), facts.get_int64("lane")
        count = facts.get_int64("count")
        other = self._other(peer, number)
        pair = self._get(peer.number, number)
        if other is None or pair is None:
            reason = f"there is no lane to {number} any more"
            peer.owe(lane_frame("over", peer=number, reason=reason, gone=False))
            return
        other.owe(lane_frame("end", peer=peer.number, lane=lane, count=count))
        pair.ended.add(peer.number)
        if len(pair.ended) == 2:
            pair.is_used = False
            pair.over_ns = self._service.now_ns

    def pass_tail(self, peer: Peer, at: int) -> WeftError | None:
        """Relay the TAIL frame at an offset of the arena; return the error, or None.

        Nothing of a tail may be dropped: its receiver counts the messages.
        """
        data = self._service.arena.data
        names = at + _HEADER + data[at + 6]
        subject = cut(data, at + _HEADER, names)
        if not is_subject(subject):
            return BadSubject(f"a subject of {len(subject)} bytes is not legal")
        if data[at + 5] & RESERVED_FLAGS:
            return reserved_flags(data[at + 5])
        other = self._other(peer, u32_at(data, at + 8))
        if other is None and subject.startswith(_INBOX):
            # A reply to a requester that is gone.
            return None
        is_reply = other is not None and is_own_inbox(other, subject)
        if not is_reply:
            if not may_publish(peer, subject):
                return may_not("publish to", subject)
            if data[at + 5] & _REQUEST and not may_request(peer, subject):
                return may_not("request", subject)
        reply = cut(data, names, names + data[at + 7])
        problem = wrong_reply(peer, reply) if reply else None
        if other is not None and problem is None:
            put_u32(data, at + 8, self._service.stamp.origin)
            put_u32(data, at + 12, peer.number & 0xFFFFFFFF)
            other.outbox.push(at, u32_at(data, at), _CUT)
        return problem

    def _other(self, peer: Peer, number: int) -> Peer | None:
        """The other end of a lane, if there is one and it has not ended."""
        if self._get(peer.number, number) is None:
            self._service.count_refused("NotKnown")
            return None
        other = self._service.peers.get(number)
        return None if other is None or other.is_over else other

    def _get(self, one: int, other: int) -> Pair | None:
        return self._pairs.get(one, {}).get(other)

    def _all(self) -> list[Pair]:
        """All pairs, each once."""
        return [
            pair
            for number, others in self._pairs.items()
            for other, pair in others.items()
            if number < other
        ]

    def _forget(self, one: int, other: int) -> None:
        for number, far in ((one, other), (other, one)):
            others = self._pairs.get(number, {})
            others.pop(far, None)
            if not others:
                self._pairs.pop(number, None)
