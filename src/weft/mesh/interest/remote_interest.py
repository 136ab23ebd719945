"""Interest sets of the other gateways, kept current by deltas.

A delta leads from one version to the next. A gateway that lacks the version before requests a
snapshot from the neighbour that sent the news, and verifies it with the digest in the signed
advert.
"""

from weft.broker.service import Service
from weft.errors import BadWord
from weft.mesh.delivery.traffic import Traffic
from weft.mesh.interest.interest_set import InterestChange, WantedSet, is_too_much
from weft.mesh.links.link import Link, SnapshotParts
from weft.mesh.membership.members import Member, Members
from weft.mesh.protocol import Delta, InterestEntry, Snapshot, Want, in_parts, wanted_bytes

# After this time, an unanswered request is repeated to another neighbour.
ASK_AGAIN_NS = 1_000_000_000
# Least interval between requests for one gateway to the same link.
ASK_NS = 200_000_000
# Least interval between snapshots of one gateway to the same link.
ANSWER_NS = 100_000_000
# Bounds on the deltas that are buffered until a snapshot arrives.
EARLY_MAX = 64
EARLY_BYTES = 16 << 10


class RemoteInterest:
    """Interest sets of all members as known here."""

    def __init__(
        self, service: Service, traffic: Traffic, members: Members, links: dict[int, Link]
    ) -> None:
        self._service = service
        self._traffic = traffic
        self._members = members
        self._links = links
        self._turn = 0

    def follow(self, link: Link, member: Member, delta: Delta | None) -> Delta | None:
        """Apply the delta of a new advert, or request a snapshot.

        Return the delta to flood on; None if it is missing or contradicts the digest.
        """
        advert = member.advert
        wanted = member.wanted
        if advert.is_leaving or member.is_current:
            return None
        if delta is None or advert.version != wanted.version + 1:
            _keep_early(member, delta)
            if link.is_ready_heard:
                self._ask(link, member)
            else:
                # The neighbour is about to send all that is missing here.
                member.asked_ns = self._service.now_ns
            return delta
        size = wanted.bytes + sum(map(wanted_bytes, delta.added))
        if is_too_much(len(wanted) + len(delta.added), size):
            self._traffic.counts.refuse("TooMuchInterest", 1)
            return None
        if wanted.digest_after(delta.added, delta.removed) != advert.digest:
            self._traffic.counts.refuse("BadInterest", 1)
            self._ask(link, member)
            return None
        self._tell(member, wanted.apply(delta.added, delta.removed))
        self._now(member)
        return delta

    def send(self, link: Link, member: Member) -> None:
        """Send the snapshot of a gateway as soon as there is room."""
        link.lacking[member.node] = None
        self.press(link)

    def press(self, link: Link) -> None:
        """Send queued snapshots, one gateway after the other."""
        while link.lacking and link.has_room:
            node = next(iter(link.lacking))
            del link.lacking[node]
            member = self._members.get(node)
            if member is None:
                continue
            if member.is_current:
                _say_all(link, member)
            else:
                member.askers.add(link.peer.number)

    def hear_want(self, link: Link, word: Want) -> None:
        """Handle a request for a snapshot."""
        member = self._members.get(word.node)
        if member is None:
            return
        if not member.is_current:
            member.askers.add(link.peer.number)
            return
        now_ns = self._service.now_ns
        if now_ns - member.sent_ns.get(link.peer.number, -ANSWER_NS) < ANSWER_NS:
            self._traffic.counts.refuse("TooManyWants", 1)
            return
        member.sent_ns[link.peer.number] = now_ns
        self.send(link, member)

    def hear_snapshot(self, link: Link, word: Snapshot) -> None:
        """Handle a part of a snapshot.

        Raises:
            BadWord: over the bounds on an interest set.
        """
        member = self._members.get(word.node)
        if member is None or member is self._members.own:
            return
        if word.part == 0:
            link.parts = SnapshotParts(word)
        parts = link.parts
        if parts is None or not parts.take(word):
            link.parts = None
            return
        if is_too_much(len(parts.wanted), parts.bytes):
            link.parts = None
            raise BadWord(f"interest set over its bounds: {len(parts.wanted)} patterns")
        if word.is_last:
            link.parts = None
            self._take(member, parts.version, parts.wanted)

    def tick(self) -> None:
        """Repeat unanswered requests; called about once a second."""
        now_ns = self._service.now_ns
        ready = [link for link in self._links.values() if link.is_ready_heard]
        if not ready:
            return
        for member in self._members.others():
            if member.is_current or member.advert.is_leaving:
                continue
            if now_ns - member.asked_ns >= ASK_AGAIN_NS:
                self._turn += 1
                self._ask(ready[self._turn % len(ready)], member)

    def forget(self, member: Member) -> None:
        """Clear the interest of a gateway that restarted or left."""
        member.wanted = WantedSet()
        member.early.clear()
        member.asked_ns = 0

    def end(self, link: Link) -> None:
        """Drop the requests of a closed link."""
        for member in self._members:
            member.askers.discard(link.peer.number)
            member.sent_ns.pop(link.peer.number, None)
            if member.asked == link.peer.number:
                member.asked_ns = 0

    def _ask(self, link: Link, member: Member) -> None:
        now_ns = self._service.now_ns
        if link.peer.number != member.asked or now_ns - member.asked_ns >= ASK_NS:
            member.asked_ns = now_ns
            member.asked = link.peer.number
            link.say(Want(member.node))

    def _take(self, member: Member, version: int, found: list[InterestEntry]) -> None:
        """Replace an interest set by a snapshot, if it matches the digest in the advert."""
        advert = member.advert
        if version > advert.version or member.is_current or advert.is_leaving:
            return
        wanted = WantedSet()
        wanted.apply(found, ())
        while version < advert.version:
            # It changed after the snapshot was sent.
            version += 1
            delta = member.early.get(version)
            if delta is None:
                return
            wanted.apply(delta.added, delta.removed)
        if wanted.digest != advert.digest or is_too_much(len(wanted), wanted.bytes):
            self._traffic.counts.refuse("BadInterest", 1)
            return
        self._tell(member, member.wanted.become(wanted.sorted()))
        self._now(member)

    def _now(self, member: Member) -> None:
        """Mark the interest of a gateway as current and answer queued requests for it."""
        member.wanted.version = member.advert.version
        self._traffic.follow(member.number, member.wanted.version)
        member.early.clear()
        askers, member.askers = member.askers, set()
        for number in askers:
            link = self._links.get(number)
            if link is not None:
                self.send(link, member)

    def _tell(self, member: Member, change: InterestChange) -> None:
        if not member.advert.is_leaving:
            self._traffic.want(member.number, change.added, change.removed)


def _say_all(link: Link, member: Member) -> None:
    parts = list(in_parts(member.wanted.sorted()))
    for part, wanted in enumerate(parts):
        is_last = part == len(parts) - 1
        link.say(Snapshot(member.node, member.wanted.version, part, is_last, wanted))


def _bytes_of(delta: Delta) -> int:
    return sum(map(wanted_bytes, delta.added)) + sum(map(wanted_bytes, delta.removed))


def _keep_early(member: Member, delta: Delta | None) -> None:
    """Buffer a delta until a snapshot arrives; a few, without a missing version between them."""
    early = member.early
    version = member.advert.version
    if delta is None or _bytes_of(delta) > EARLY_BYTES:
        early.clear()
    else:
        if version - 1 not in early:
            early.clear()
        early[version] = delta
        early.pop(version - EARLY_MAX, None)
