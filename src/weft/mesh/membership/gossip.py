"""How gateways come to know the same of each other: who is there, its links, and what it wants.

What is new is passed on to all links but the one that it came by. Two that have just been linked
tell each other what they know, and then what the other lacks; and each ping says by a digest
whether that is still the same, so that nothing stays missing.
"""

from weft.broker.replies import end_with
from weft.broker.service import Service
from weft.errors import BadWord, NotAdmitted, SameNumber
from weft.mesh.delivery.traffic import Traffic
from weft.mesh.interest.remote_interest import Interests
from weft.mesh.links.duplicate_identity import Copies
from weft.mesh.links.handshake import Admission, node_id
from weft.mesh.links.link import SUMMARY_ALL_MAX, Link
from weft.mesh.membership import advert as adverts
from weft.mesh.membership.advert import LAST_LIFE, Advert, Signed
from weft.mesh.membership.members import MEMBERS_MAX, Member, Members
from weft.mesh.protocol import (
    SUMMARY_MAX,
    AdvertWord,
    Delta,
    Known,
    Ready,
    Snapshot,
    Summary,
    Want,
    Word,
    frame_of,
)

# More than any gateway has to say about itself in a second.
ADVERTS_PER_S = 100
# How often two may find that they know different things before they compare them all.
MISMATCHES = 3
COMPARE_NS = 1_000_000_000
# However often the other side compares, it is not sent what it lacks more often than this.
SUPPLY_NS = 300_000_000
# Nor is its digest looked at more often.
DIGEST_NS = 100_000_000

_MS = 1_000_000
_S = 1_000_000_000


class Gossip:
    """What is known of all gateways, and what is said about it by the links."""

    def __init__(
        self,
        service: Service,
        admission: Admission,
        traffic: Traffic,
        members: Members,
        links: dict[int, Link],
    ) -> None:
        self._service = service
        self._admission = admission
        self._traffic = traffic
        self._members = members
        self._links = links
        self.copies = Copies(members, links)
        self.interests = Interests(service, traffic, members, links)
        # The links lie otherwise than they did, as far as somebody has said.
        self.is_moved = True
        # A life of this gateway that others take for a later one than this is.
        self.claimed = 0

    def begin(self, link: Link) -> None:
        """Tell a gateway that was just linked with what is known here."""
        member = self._members.get(link.node)
        link.is_named = member is not None and member.number == link.number
        self._summarise(link)

    def end(self, link: Link) -> None:
        """A link is gone: what was asked for by it has to be asked for elsewhere."""
        self.interests.end(link)

    def advertise(self, signed: Signed, delta: Delta | None) -> None:
        """This gateway says something new about itself."""
        own = self._members.own
        self._members.renew(own, signed)
        self._pass_on(own, delta, None)

    def hear(self, link: Link, word: Word) -> bool:
        """Hear a word of the gateway at the other end of a link; False if it is about other things.

        Raises:
            BadAdvert, BadWord: whoever says it has not looked at what it says.
        """
        match word:
            case AdvertWord():
                self.hear_advert(link, word)
            case Summary():
                self.hear_summary(link, word)
            case Want():
                self.interests.hear_want(link, word)
            case Snapshot():
                self.interests.hear_snapshot(link, word)
            case Ready():
                self.hear_ready(link)
            case _:
                return False
        return True

    def hear_summary(self, link: Link, word: Summary) -> None:
        """The other side says what it knows: send what it lacks, and then that this was all."""
        if len(link.summary) + len(word.entries) > SUMMARY_ALL_MAX:
            raise BadWord(f"a summary of more than {SUMMARY_ALL_MAX} gateways")
        link.summary.update((known.node, known) for known in word.entries)
        if not word.is_last:
            return
        summary, link.summary = link.summary, {}
        now_ns = self._service.now_ns
        if link.is_ready_said and now_ns - link.supplied_ns < SUPPLY_NS:
            self._traffic.counts.refuse("TooManySummaries", 1)
            return
        link.supplied_ns = now_ns
        for member in list(self._members):
            self._supply(link, member, summary.get(member.node))
        self._end_supply(link)

    def press(self) -> None:
        """Send more of what others lack; many times a second."""
        for link in self._links.values():
            if link.lacking:
                self.interests.press(link)
                self._end_supply(link)

    def hear_ready(self, link: Link) -> None:
        """The other side has sent everything that was missing here."""
        link.is_ready_heard = True
        self.is_moved = True

    def hear_digest(self, link: Link, digest: int) -> None:
        """The other side knows what has this digest: if that stays different, compare."""
        now_ns = self._service.now_ns
        if now_ns - link.compared_ns < DIGEST_NS:
            return
        link.compared_ns = now_ns
        if digest == self._members.digest():
            link.mismatches = 0
            return
        link.mismatches += 1
        if link.mismatches >= MISMATCHES and now_ns - link.summary_ns > COMPARE_NS:
            link.mismatches = 0
            self._summarise(link)

    def hear_advert(self, link: Link, word: AdvertWord) -> None:
        """A gateway says something about itself, or somebody passes on that it did.

        Raises:
            BadAdvert: it did not say that; whoever passed it on did not look.
        """
        if self._members.is_said(word.said):
            # Nearly all that is heard comes by several links: it is looked at once.
            return
        advert = adverts.read(word)
        node = node_id(advert.key)
        member = self._members.get(node)
        if member is not None and advert.age <= member.advert.age:
            return
        problem = self._problem(member, advert, word)
        if problem:
            self._traffic.counts.refuse(problem, 1)
            return
        if member is self._members.own:
            self._hear_claim(advert)
            return
        signed = Signed(advert, word.said, word.signature)
        if member is None:
            member = self._meet(signed, word.lost_ms)
            self.is_moved = True
        elif self._renew(member, signed):
            self.is_moved = True
        self._name_links(member)
        delta = self.interests.follow(link, member, word.delta)
        self._pass_on(member, delta, link)

    def forget(self, member: Member) -> None:
        """A gateway is no more, or was away for too long."""
        self._traffic.part(member.number)
        self._members.forget(member)

    def _problem(self, member: Member | None, advert: Advert, word: AdvertWord) -> str:
        """The name of what is wrong with an advert that is new; empty if nothing is."""
        if member is None and len(self._members) >= MEMBERS_MAX:
            return "TooManyGateways"
        if member is not None and not _is_in_time(member, self._service.now_ns // _S):
            return "TooManyAdverts"
        try:
            adverts.check(word, advert, self._admission, self._service.name)
        except NotAdmitted:
            return "NotAdmitted"
        if member is self._members.own:
            return ""
        if self._members.numbered(advert.number) not in (None, member):
            return "SameNumber"
        if member is None or member.number == advert.number:
            return ""
        if self.copies.is_copy(member, advert):
            return "CopiedKey"
        return "OtherNumber" if member.advert.incarnation == advert.incarnation else ""

    def _hear_claim(self, advert: Advert) -> None:
        """This gateway has said that, but not in this life; or somebody else has its key."""
        if self._members.own.advert.incarnation > self.claimed > 0:
            # This was refuted already, and whoever says it is alive.
            self._traffic.counts.refuse("CopiedKey", 1)
            if advert.number != self._members.own.number:
                self.copies.of_this(advert)
        if advert.incarnation < LAST_LIFE:
            self.claimed = max(self.claimed, advert.incarnation)

    def _meet(self, signed: Signed, lost_ms: int) -> Member:
        # There may be no way to it yet, and there was none where this was heard for a while.
        member = Member(signed, max(1, self._service.now_ns - lost_ms * _MS))
        self._members.add(member)
        if not signed.advert.is_leaving:
            self._traffic.meet(member.number, signed.advert.name)
        return member

    def _renew(self, member: Member, signed: Signed) -> bool:
        """Go by what a gateway says now; whether its links, or itself, are others than before."""
        before, advert = member.advert, signed.advert
        if before.number != advert.number or advert.is_leaving:
            # It has begun anew, or ends, and nothing of what it was before holds.
            self._traffic.part(member.number)
            self.interests.forget(member)
        self._members.renew(member, signed)
        if not advert.is_leaving:
            self._traffic.meet(member.number, advert.name)
        return (before.number, before.links, before.is_leaving) != (
            advert.number,
            advert.links,
            advert.is_leaving,
        )

    def _name_links(self, member: Member) -> None:
        """Messages go by a link only if its gateway has the number that it was greeted with."""
        for link in self._links.values():
            if link.node == member.node:
                is_named = link.number == member.number
                self.is_moved = self.is_moved or is_named != link.is_named
                link.is_named = is_named
            elif link.number == member.number:
                end_with(link.peer, SameNumber(f"number {link.number} is that of another gateway"))

    def _pass_on(self, member: Member, delta: Delta | None, source: Link | None) -> None:
        # Once for all links: with many gateways this is most of what is said.
        frame = frame_of(member.word(self._service.now_ns, delta))
        for link in self._links.values():
            if link is not source and not link.is_registration:
                if member.advert.is_leaving:
                    # Not before its last messages.
                    link.peer.owe(frame)
                else:
                    link.peer.owe_first(frame)

    def _summarise(self, link: Link) -> None:
        link.summary_ns = self._service.now_ns
        entries = tuple(member.known for member in self._members)
        for at in range(0, len(entries), SUMMARY_MAX):
            part = entries[at : at + SUMMARY_MAX]
            link.say(Summary(part, at + SUMMARY_MAX >= len(entries)))

    def _end_supply(self, link: Link) -> None:
        """Tell the other side once that it has everything that was known here."""
        if link.supplied_ns and not link.lacking and not link.is_ready_said:
            link.is_ready_said = True
            link.say(Ready())
            self.is_moved = True

    def _supply(self, link: Link, member: Member, known: Known | None) -> None:
        """Send what the other side lacks of one gateway."""
        age = (known.incarnation, known.sequence) if known is not None else (-1, -1)
        if age > member.advert.age:
            return
        if age < member.advert.age:
            link.say(member.word(self._service.now_ns))
        if member.is_current and (known.version if known else 0) != member.wanted.version:
            self.interests.send(link, member)


def _is_in_time(member: Member, second: int) -> bool:
    """Say if a gateway has said no more in this second than it may."""
    if member.second != second:
        member.second = second
        member.adverts = 0
    member.adverts += 1
    return member.adverts <= ADVERTS_PER_S
