"""Gossip: floods adverts and interest changes, and repairs differences between gateways.

News is forwarded to all links except the one it came from. Two newly linked gateways exchange
summaries, then what the other lacks. Each ping carries a digest, so that remaining differences are
detected and repaired.
"""

from weft.broker.replies import end_with
from weft.broker.service import Service
from weft.errors import BadWord, NotAdmitted, SameNumber
from weft.mesh.delivery.traffic import Traffic
from weft.mesh.interest.remote_interest import RemoteInterest
from weft.mesh.links.duplicate_identity import Copies
from weft.mesh.links.handshake import Admission, node_id
from weft.mesh.links.link import SUMMARY_ALL_MAX, Link
from weft.mesh.membership import advert as adverts
from weft.mesh.membership.advert import LAST_LIFE, Advert, SignedAdvert
from weft.mesh.membership.members import MEMBERS_MAX, Member, Members
from weft.mesh.protocol import (
    SUMMARY_MAX,
    AdvertWord,
    Delta,
    Known,
    LinkReady,
    Snapshot,
    Summary,
    Want,
    Word,
    frame_of,
)

# Bound on adverts per gateway and second, above any legitimate rate.
ADVERTS_PER_S = 100
# Consecutive pings with different digests before the gateways compare summaries.
MISMATCHES = 3
COMPARE_NS = 1_000_000_000
# Least interval between supplies of missing adverts to one link.
SUPPLY_NS = 300_000_000
# Least interval between comparisons of its digest.
DIGEST_NS = 100_000_000

_MS = 1_000_000
_S = 1_000_000_000


class Gossip:
    """Distribution of adverts and interest over the links of one gateway."""

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
        self.interests = RemoteInterest(service, traffic, members, links)
        # Whether the topology has changed.
        self.is_moved = True
        # Latest incarnation of this gateway that another advert claims.
        self.claimed = 0

    def begin(self, link: Link) -> None:
        """Send a summary to a newly linked gateway."""
        member = self._members.get(link.node)
        link.is_named = member is not None and member.number == link.number
        self._summarise(link)

    def end(self, link: Link) -> None:
        """Drop the requests of a closed link."""
        self.interests.end(link)

    def advertise(self, signed: SignedAdvert, delta: Delta | None) -> None:
        """Flood a new advert of this gateway."""
        own = self._members.own
        self._members.renew(own, signed)
        self._pass_on(own, delta, None)

    def hear(self, link: Link, word: Word) -> bool:
        """Handle a control message of a neighbour; False if it is of another kind.

        Raises:
            BadAdvert, BadWord: sent by the neighbour without validation.
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
            case LinkReady():
                self.hear_ready(link)
            case _:
                return False
        return True

    def hear_summary(self, link: Link, word: Summary) -> None:
        """Handle a summary: send what the other side lacks, then Ready."""
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
        """Send more queued snapshots; called many times a second."""
        for link in self._links.values():
            if link.lacking:
                self.interests.press(link)
                self._end_supply(link)

    def hear_ready(self, link: Link) -> None:
        """Note that the other side has sent all that was missing here."""
        link.is_ready_heard = True
        self.is_moved = True

    def hear_digest(self, link: Link, digest: int) -> None:
        """Compare the digest of the other side; exchange summaries if it stays different."""
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
        """Handle an advert of a gateway, from itself or forwarded.

        Raises:
            BadAdvert: wrong signature or another service.
        """
        if self._members.is_said(word.said):
            # Most adverts arrive on several links: only the first is verified.
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
        signed = SignedAdvert(advert, word.said, word.signature)
        if member is None:
            member = self._meet(signed, word.lost_ms)
            self.is_moved = True
        elif self._renew(member, signed):
            self.is_moved = True
        self._name_links(member)
        delta = self.interests.follow(link, member, word.delta)
        self._pass_on(member, delta, link)

    def forget(self, member: Member) -> None:
        """Remove a gateway that left or was unreachable for too long."""
        self._traffic.part(member.number)
        self._members.forget(member)

    def _problem(self, member: Member | None, advert: Advert, word: AdvertWord) -> str:
        """Return why a new advert is rejected; empty if it is not."""
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
        """Note an advert of this gateway from before its start, or from a copy of its key."""
        if self._members.own.advert.incarnation > self.claimed > 0:
            # Already refuted, so the other gateway is running.
            self._traffic.counts.refuse("CopiedKey", 1)
            if advert.number != self._members.own.number:
                self.copies.of_this(advert)
        if advert.incarnation < LAST_LIFE:
            self.claimed = max(self.claimed, advert.incarnation)

    def _meet(self, signed: SignedAdvert, lost_ms: int) -> Member:
        # It may be unreachable so far, and may have been for a while at the sender.
        member = Member(signed, max(1, self._service.now_ns - lost_ms * _MS))
        self._members.add(member)
        if not signed.advert.is_leaving:
            self._traffic.meet(member.number, signed.advert.name)
        return member

    def _renew(self, member: Member, signed: SignedAdvert) -> bool:
        """Store a new advert; return whether the links or the gateway itself changed."""
        before, advert = member.advert, signed.advert
        if before.number != advert.number or advert.is_leaving:
            # Restarted or leaving: its earlier state is invalid.
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
        """Confirm links by their advertised numbers: only those may carry messages."""
        for link in self._links.values():
            if link.node == member.node:
                is_named = link.number == member.number
                self.is_moved = self.is_moved or is_named != link.is_named
                link.is_named = is_named
            elif link.number == member.number:
                end_with(link.peer, SameNumber(f"number {link.number} is that of another gateway"))

    def _pass_on(self, member: Member, delta: Delta | None, source: Link | None) -> None:
        # Encoded once for all links: in a large mesh this is most of the traffic.
        frame = frame_of(member.word(self._service.now_ns, delta))
        for link in self._links.values():
            if link is not source and not link.is_registration:
                if member.advert.is_leaving:
                    # Queued behind its last messages.
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
        """Send Ready once the other side has all that it lacked."""
        if link.supplied_ns and not link.lacking and not link.is_ready_said:
            link.is_ready_said = True
            link.say(LinkReady())
            self.is_moved = True

    def _supply(self, link: Link, member: Member, known: Known | None) -> None:
        """Send the advert and interest of one gateway that the other side lacks."""
        age = (known.incarnation, known.sequence) if known is not None else (-1, -1)
        if age > member.advert.age:
            return
        if age < member.advert.age:
            link.say(member.word(self._service.now_ns))
        if member.is_current and (known.version if known else 0) != member.wanted.version:
            self.interests.send(link, member)


def _is_in_time(member: Member, second: int) -> bool:
    """Return whether a gateway is below its limit of adverts per second."""
    if member.second != second:
        member.second = second
        member.adverts = 0
    member.adverts += 1
    return member.adverts <= ADVERTS_PER_S
