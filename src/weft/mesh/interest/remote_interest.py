"""What all the other gateways want, followed by the changes that they tell.

A change leads from one version to the next. Whoever lacks the one before asks the gateway that the
news came from for everything, and is held against the digest that the wanting gateway signed.
"""

from weft.broker.service import Service
from weft.errors import BadWord
from weft.mesh.delivery.traffic import Traffic
from weft.mesh.interest.interest_set import Change, WantedSet, is_too_much
from weft.mesh.links.link import Link, Parts
from weft.mesh.membership.members import Member, Members
from weft.mesh.protocol import Delta, Snapshot, Want, Wanted, in_parts, wanted_bytes

# What was asked for and did not come is asked for again, from somebody else.
ASK_AGAIN_NS = 1_000_000_000
# However much news there is of somebody, one link is not asked for it more often than this.
ASK_NS = 200_000_000
# A link is sent the same again only so often, however often it asks.
ANSWER_NS = 100_000_000
# Changes that are kept until what they change is there.
EARLY_MAX = 64
EARLY_BYTES = 16 << 10


class Interests:
    """What the members of a mesh want, as it is known here."""

    def __init__(
        self, service: Service, traffic: Traffic, members: Members, links: dict[int, Link]
    ) -> None:
        self._service = service
        self._traffic = traffic
        self._members = members
        self._links = links
        self._turn = 0

    def follow(self, link: Link, member: Member, delta: Delta | None) -> Delta | None:
        """A gateway has advertised: go from the version that is known to the one that it names.

        What others may be told of the change: not what is known to be wrong.
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
                # The other side is about to send everything that is missing here.
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
        """Send a gateway everything that another wants, as soon as there is room for it."""
        link.lacking[member.node] = None
        self.press(link)

    def press(self, link: Link) -> None:
        """Send more of what the other side of a link lacks, one gateway after the other."""
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
        """Somebody asks for everything that a gateway wants."""
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
        """A part of everything that a gateway wants.

        Raises:
            BadWord: it is more than anybody may want.
        """
        member = self._members.get(word.node)
        if member is None or member is self._members.own:
            return
        if word.part == 0:
            link.parts = Parts(word)
        parts = link.parts
        if parts is None or not parts.take(word):
            link.parts = None
            return
        if is_too_much(len(parts.wanted), parts.bytes):
            link.parts = None
            raise BadWord(f"more than a gateway may want: {len(parts.wanted)} patterns")
        if word.is_last:
            link.parts = None
            self._take(member, parts.version, parts.wanted)

    def tick(self) -> None:
        """Ask again for what did not come; about once a second."""
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
        """A gateway has begun anew, or is no more: it wants nothing until it says so."""
        member.wanted = WantedSet()
        member.early.clear()
        member.asked_ns = 0

    def end(self, link: Link) -> None:
        """A link is gone: nobody waits any longer for what was asked for by it."""
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

    def _take(self, member: Member, version: int, found: list[Wanted]) -> None:
        """Everything that a gateway wants is there: if that is what it said, it counts."""
        advert = member.advert
        if version > advert.version or member.is_current or advert.is_leaving:
            return
        wanted = WantedSet()
        wanted.apply(found, ())
        while version < advert.version:
            # It has changed since this was sent.
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
        """What a gateway wants is known: tell those who asked for it."""
        member.wanted.version = member.advert.version
        self._traffic.follow(member.number, member.wanted.version)
        member.early.clear()
        askers, member.askers = member.askers, set()
        for number in askers:
            link = self._links.get(number)
            if link is not None:
                self.send(link, member)

    def _tell(self, member: Member, change: Change) -> None:
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
    """Keep a change for when what it changes is there; of a few, without a gap between them."""
    early = member.early
    version = member.advert.version
    if delta is None or _bytes_of(delta) > EARLY_BYTES:
        early.clear()
    else:
        if version - 1 not in early:
            early.clear()
        early[version] = delta
        early.pop(version - EARLY_MAX, None)
