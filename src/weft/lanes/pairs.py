"""Who has lanes with whom, by what was offered; what the two say to each other is passed on.

Two that never were offered a lane can tell each other nothing by this.
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

# What comes late by a lane that both have ended is still passed on for so long.
LINGER_NS = 60_000_000_000
# Of how many lanes one word may speak.
PEERS_MAX = 1024

_HEADER = HEADER_BYTES
_CUT = int(Policy.CUT)
_REQUEST = int(Flag.REQUEST)
_INBOX = b"_INBOX."


class Pair:
    """Two connections that were offered a lane."""

    def __init__(self) -> None:
        # Those of the two that have said that they ended it.
        self.ended: set[int] = set()
        # There is or was a lane, and not only an offer of one.
        self.is_used = False
        # Since when it is only remembered for what comes late; 0: it is not.
        self.over_ns = 0


class LanePairs:
    """The lanes of a service, each between two connections."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._pairs: dict[int, dict[int, Pair]] = {}

    def __len__(self) -> int:
        return sum([not pair.over_ns for pair in self._all()])

    def open(self, one: Peer, other: Peer) -> None:
        """Let two speak of a lane between them."""
        pair = self._get(one.number, other.number) or Pair()
        pair.ended.clear()
        pair.over_ns = 0
        self._pairs.setdefault(one.number, {})[other.number] = pair
        self._pairs.setdefault(other.number, {})[one.number] = pair

    def use(self, one: Peer, other: Peer) -> None:
        """One of the two has taken an offer up."""
        pair = self._get(one.number, other.number)
        if pair is not None:
            pair.is_used = True
            pair.over_ns = 0

    def abandon(self, one: Peer, other: Peer) -> None:
        """Nothing came of an offer: if there was no lane before, forget it after a while."""
        pair = self._get(one.number, other.number)
        if pair is not None and not pair.is_used:
            pair.over_ns = self._service.now_ns

    def close(self, one: Peer, other: Peer, reason: str) -> None:
        """Have both ends close their lane, and let them say nothing more."""
        if self._get(one.number, other.number) is not None:
            self._forget(one.number, other.number)
            one.owe(lane_frame("over", peer=other.number, reason=reason, gone=False))
            other.owe(lane_frame("over", peer=one.number, reason=reason, gone=False))

    def part(self, peer: Peer, reason: str) -> None:
        """A peer is over: whoever has lanes with it is told."""
        for number in list(self._pairs.get(peer.number, ())):
            self._forget(peer.number, number)
            other = self._service.peers.get(number)
            if other is not None:
                other.owe(lane_frame("over", peer=peer.number, reason=reason, gone=True))

    def tick(self) -> None:
        """Forget those that are over since long."""
        oldest_ns = self._service.now_ns - LINGER_NS
        for number, others in list(self._pairs.items()):
            for other, pair in list(others.items()):
                if pair.over_ns and pair.over_ns < oldest_ns:
                    self._forget(number, other)

    def switch(self, peer: Peer, facts: Message) -> None:
        """Tell others where in its stream a peer changes its way to them."""
        peers, lanes = facts.get_list("peers"), facts.get_list("lanes")
        numbers = facts.get_list("numbers")
        if not len(peers) == len(lanes) == len(numbers) <= PEERS_MAX:
            raise BadOption(
                f"{len(peers)} peers, {len(lanes)} lanes and {len(numbers)} numbers: there must be"
                f" as many of each, at most {PEERS_MAX}"
            )
        if not all(type(each) is int for each in [*peers, *lanes, *numbers]):
            raise BadOption("peers, lanes and numbers are lists of int64")
        # The word itself is paid for already.
        spend(peer, len(peers))
        for number, lane, step in zip(peers, lanes, numbers, strict=True):
            other = self._other(peer, number)
            if other is not None:
                other.owe(lane_frame("switch", peer=peer.number, lane=lane, number=step))

    def tail(self, peer: Peer, facts: Message) -> None:
        """Tell the other that the rest of a lane follows through the gateway."""
        start, lane = facts.get_int64("from"), facts.get_int64("lane")
        other = self._other(peer, facts.get_int64("peer"))
        if other is not None:
            # `from` is a word of the language.
            facts_of_tail: dict[str, Any] = {"peer": peer.number, "lane": lane, "from": start}
            other.owe(lane_frame("tail", **facts_of_tail))

    def end(self, peer: Peer, facts: Message) -> None:
        """Tell the other that a lane is over; it is, once both have said so.

        Whoever waits for the same from somebody who is gone would wait for ever.
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
        """Pass the TAIL frame at an offset of the arena on; what is wrong with it, or None.

        Nothing of a tail may be dropped: whoever gets it goes by its count.
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
            # An answer to somebody who is gone.
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
        """The other end of a lane, if there is one and it is not over."""
        if self._get(peer.number, number) is None:
            self._service.count_refused("NotKnown")
            return None
        other = self._service.peers.get(number)
        return None if other is None or other.is_over else other

    def _get(self, one: int, other: int) -> Pair | None:
        return self._pairs.get(one, {}).get(other)

    def _all(self) -> list[Pair]:
        """Each once."""
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
