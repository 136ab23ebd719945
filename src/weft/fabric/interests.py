"""What all the other gateways want, followed by the changes that they tell.

A change leads from one version to the next. Whoever lacks the one before asks the gateway that the
news came from for everything, and is held against the digest that the wanting gateway signed.
"""

from weft.core.service import Service
from weft.errors import BadWord
from weft.fabric.link import Link
from weft.fabric.members import Member, Members
from weft.fabric.traffic import Traffic
from weft.fabric.wanted import Change, digest_of, is_too_much
from weft.fabric.words import Delta, Snapshot, Want, Wanted, in_parts, wanted_bytes

# What was asked for and did not come is asked for again, from somebody else.
ASK_AGAIN_NS = 1_000_000_000


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

    def follow(self, link: Link, member: Member, delta: Delta | None) -> None:
        """A gateway has advertised: go from the version that is known to the one that it names."""
        advert = member.advert
        wanted = member.wanted
        if advert.is_leaving or member.is_current:
            return
        if delta is None or advert.version != wanted.version + 1:
            if link.is_ready_heard:
                self._ask(link, member)
            else:
                # The other side is about to send everything that is missing here.
                member.asked_ns = self._service.now_ns
            return
        size = wanted.bytes + sum(map(wanted_bytes, delta.added))
        if is_too_much(len(wanted) + len(delta.added), size):
            self._traffic.counts.refuse("TooMuchInterest", 1)
            return
        change = wanted.apply(delta.added, delta.removed)
        self._tell(member, change)
        if wanted.digest == advert.digest:
            self._now(member, advert.version)
        else:
            self._traffic.counts.refuse("BadInterest", 1)
            self._ask(link, member)

    def send(self, link: Link, member: Member) -> None:
        """Send a gateway everything that another wants."""
        version = member.wanted.version
        parts = list(in_parts(member.wanted.sorted()))
        for part, wanted in enumerate(parts):
            link.say(Snapshot(member.node, version, part, part == len(parts) - 1, wanted))

    def hear_want(self, link: Link, word: Want) -> None:
        """Somebody asks for everything that a gateway wants."""
        member = self._members.get(word.node)
        if member is None:
            return
        if member.is_current:
            self.send(link, member)
        else:
            member.askers.add(link.peer.number)

    def hear_snapshot(self, link: Link, word: Snapshot) -> None:
        """A part of everything that a gateway wants.

        Raises:
            BadWord: it is more than anybody may want.
        """
        member = self._members.get(word.node)
        if member is None or member is self._members.own:
            return
        version, found = link.snapshots.get(word.node, (word.version, []))
        if word.part == 0 or version != word.version:
            version, found = word.version, []
        found.extend(word.wanted)
        if is_too_much(len(found), sum(map(wanted_bytes, found))):
            link.snapshots.pop(word.node, None)
            raise BadWord(f"more than a gateway may want: {len(found)} patterns")
        if not word.is_last:
            link.snapshots[word.node] = (version, found)
            return
        link.snapshots.pop(word.node, None)
        self._take(member, version, found)

    def tick(self) -> None:
        """Ask again for what did not come; about once a second."""
        now_ns = self._service.now_ns
        ready = [link for link in self._links.values() if not link.is_registration]
        if not ready:
            return
        for member in self._members.others():
            if member.is_current or member.advert.is_leaving:
                continue
            if now_ns - member.asked_ns >= ASK_AGAIN_NS:
                self._turn += 1
                self._ask(ready[self._turn % len(ready)], member)

    def forget(self, member: Member) -> None:
        """A gateway has begun anew: it wants nothing until it says so."""
        member.wanted = type(member.wanted)()

    def end(self, link: Link) -> None:
        """A link is gone: whoever asked by it does not wait any longer."""
        for member in self._members:
            member.askers.discard(link.peer.number)

    def _ask(self, link: Link, member: Member) -> None:
        member.asked_ns = self._service.now_ns
        link.say(Want(member.node))

    def _take(self, member: Member, version: int, found: list[Wanted]) -> None:
        """Everything that a gateway wants is there: if that is what it said, it counts."""
        advert = member.advert
        if version != advert.version or member.is_current or advert.is_leaving:
            return
        if digest_of(found) != advert.digest:
            self._traffic.counts.refuse("BadInterest", 1)
            return
        self._tell(member, member.wanted.become(found))
        self._now(member, version)

    def _now(self, member: Member, version: int) -> None:
        member.wanted.version = version
        askers, member.askers = member.askers, set()
        for number in askers:
            link = self._links.get(number)
            if link is not None:
                self.send(link, member)

    def _tell(self, member: Member, change: Change) -> None:
        if not member.advert.is_leaving:
            self._traffic.want(member.number, change.added, change.removed)
