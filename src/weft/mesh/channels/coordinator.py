"""Coordinator of channels: opens, announces, closes, and tracks those of other gateways.

Every gateway with members of a channel announces it to all others, on change and periodically,
which renews the leases of its name. There is no primary gateway: a channel lives as long as any
gateway has a member.
"""

from collections.abc import Callable

from weft.broker.channel_membership import Admissions
from weft.broker.service import Peer, Service
from weft.errors import ChannelClosed as ClosedForAll
from weft.errors import (
    ChannelContested,
    ChannelExists,
    ChannelLost,
    NoMajority,
    Overloaded,
    TooMany,
    WeftError,
)
from weft.mesh.channels.announcer import Holding
from weft.mesh.channels.directory import ChannelTable, KnownChannel
from weft.mesh.channels.leases import CONFIRMED, FAILED, LEASE_NS, LeaseClaim, Note, Promises
from weft.mesh.channels.open_vote import EXISTS, Electorate, End, Opening
from weft.mesh.channels.protocol import (
    ChannelAsk,
    ChannelClosedNotice,
    ChannelDropped,
    ChannelVote,
    ChannelWord,
    Record,
)
from weft.mesh.channels.quorum import Voters
from weft.mesh.membership.mesh_handle import Mesh
from weft.wire.password_proof import Verifier

OPENINGS_MAX = 256
# Bound on the channels with members at this gateway.
HELD_HERE_MAX = 10_000
LOOK_NS = 100_000_000
COUNT_NS = 1_000_000_000
# How long a closed channel is remembered, so that a late announcement does not revive it.
CLOSED_NS = 60_000_000_000
CLOSED_MAX = 65_536

# Gets the result of an open request: the channel or an error, and the gateways without an answer.
Opened = Callable[[KnownChannel | WeftError, list[str]], None]


class ChannelCoordinator:
    """Opens, holds and closes channels; `mesh` is None without other gateways."""

    def __init__(self, service: Service, voters: Voters, promises: Promises) -> None:
        self._service = service
        self.voters = voters
        self.promises = promises
        self.mesh: Mesh | None = None
        self.admissions = Admissions()
        self.table = ChannelTable()
        self.holding = Holding(self)
        self._openings: dict[int, Opening] = {}
        self._token = 0
        # Recently closed channels, with the time at which each is forgotten.
        self._closed: dict[bytes, tuple[ChannelClosedNotice, int]] = {}
        self._look_ns = self._count_ns = 0
        self.admissions.on_change = self.holding.changed
        service.on_member_over = self.admissions.leave_all

    @property
    def service(self) -> Service:
        """The service that the channels belong to."""
        return self._service

    @property
    def own(self) -> int:
        """The number of this gateway."""
        return self._service.stamp.origin

    @property
    def now_ns(self) -> int:
        """Monotonic time."""
        return self._service.now_ns

    def next_token(self) -> int:
        """Return a token larger than all before it, which orders the messages of this gateway."""
        self._token += 1
        return self._token

    # Requests of connections.

    def open(self, peer: Peer, name: bytes, verifier: Verifier | None, opened: Opened) -> None:
        """Open a channel, protected if there is a verifier; `opened` may be called at once."""
        if self.table.named(name):
            opened(_exists(name), [])
        elif any(each.record.name == name for each in self._openings.values()):
            opened(_contested(name), [])
        elif len(self._openings) >= OPENINGS_MAX:
            opened(Overloaded(f"{OPENINGS_MAX} channels are being opened already"), [])
        elif len(self.admissions) >= HELD_HERE_MAX:
            opened(TooMany(f"this gateway has {HELD_HERE_MAX} channels, which is the limit"), [])
        else:
            keys = verifier or Verifier(b"", b"")
            record = Record(name, self.voters.own, 0, *keys, peer.name, self._service.gateway)
            self._begin(
                Opening(record, self.now_ns, lambda ended, end: self._end(ended, end, opened))
            )

    def find(self, name: bytes) -> KnownChannel | None:
        """Return the channel to join by a name, if there is one."""
        return max(self.table.named(name), key=self._preference, default=None)

    def admit(self, peer: Peer, channel: KnownChannel) -> None:
        """Make an authorized connection a member.

        Raises:
            TooMany: the connection or this gateway is at its limit of channels.
        """
        key = hexadecimal(channel.id)
        if not self.admissions.count(key) and len(self.admissions) >= HELD_HERE_MAX:
            raise TooMany(f"this gateway has {HELD_HERE_MAX} channels, which is the limit")
        self.admissions.admit(peer, key, channel.record.name)

    def close(self, channel: KnownChannel) -> None:
        """Close a channel on all gateways."""
        word = ChannelClosedNotice(channel.record)
        for number in self.others():
            self.say(number, word)
        self._close(word)

    # Control messages of other gateways.

    def hear(self, origin: int, word: ChannelWord) -> None:
        """Handle a control message about channels."""
        match word:
            case ChannelAsk(token, record):
                claim = LeaseClaim(origin, token)
                self.say(origin, ChannelVote(token, *self._judged(claim, record)))
            case ChannelVote(token, verdict, epoch):
                opening = self._openings.get(token)
                if opening is not None:
                    opening.hear(origin, verdict, epoch)
                    self._settle(token, opening)
            case ChannelDropped():
                self.holding.hear_dropped(origin, word)
            case ChannelClosedNotice(record) if not record.is_sound:
                self.refuse("BadChannel")
            case ChannelClosedNotice():
                self._close(word)
            case _:
                self.holding.hear(origin, word)

    def closed(self, channel: bytes) -> ChannelClosedNotice | None:
        """Return the close message of a recently closed channel, or None."""
        found = self._closed.get(channel)
        return None if found is None else found[0]

    # Timers.

    def tick(self) -> None:
        """Time out votes, announce changes, and dismiss members of conflicting channels."""
        now_ns = self.now_ns
        for token, opening in list(self._openings.items()):
            self._settle(token, opening)
        self.holding.tick()
        if now_ns - self._look_ns >= LOOK_NS:
            self._look_ns = now_ns
            self._see_who_lost()
        if now_ns - self._count_ns >= COUNT_NS:
            self._count_ns = now_ns
            if self.mesh is not None:
                self.voters.look(self.mesh.members, now_ns)
            self.table.expire(now_ns, self._is_gone)
            self._closed = {each: end for each, end in self._closed.items() if end[1] > now_ns}

    # Gateways.

    def others(self) -> list[int]:
        """Return the numbers of the reachable gateways, except this one."""
        return [] if self.mesh is None else [each.number for each in self.mesh.members.there()]

    def node_of(self, number: int) -> bytes:
        """Return the id of a gateway, empty if unknown."""
        if number == self.own:
            return self.voters.own
        member = None if self.mesh is None else self.mesh.members.numbered(number)
        return b"" if member is None else member.node

    def say(self, number: int, word: ChannelWord) -> bool:
        """Send a control message to a gateway; False if it is unreachable."""
        return self.mesh is not None and self.mesh.say(number, word)

    def refuse(self, problem: str) -> None:
        """Count an invalid control message of another gateway."""
        if self.mesh is not None:
            self.mesh.counts.refuse(problem, 1)

    # Open votes.

    def _begin(self, opening: Opening) -> None:
        """Request votes for an epoch above all that are known here."""
        name = opening.record.name
        if self.mesh is not None:
            self.voters.look(self.mesh.members, self.now_ns)
        epoch = 1 + max(self.promises.epoch(name), opening.epoch)
        record = opening.record._replace(epoch=epoch)
        channel = record.channel(self._service.name)
        token = self.next_token()
        claim = LeaseClaim(self.own, token)
        own = self.promises.open(Note(name, epoch, channel), claim, self.now_ns)
        asked = self.others() if own == CONFIRMED else []
        electorate = Electorate(frozenset(asked), self.voters.majority)
        opening.begin(record, channel, electorate, own)
        self._openings[token] = opening
        word = ChannelAsk(token, record)
        for number in asked:
            self.say(number, word)
        self._settle(token, opening)

    def _settle(self, token: int, opening: Opening) -> None:
        end = opening.end(self.now_ns)
        if end is None:
            return
        del self._openings[token]
        if end is not End.OPENED:
            self._drop(opening)
        if end is End.OUTDATED:
            self._begin(opening)
        else:
            opening.done(opening, end)

    def _drop(self, opening: Opening) -> None:
        """Withdraw the claim to the name at all gateways that were asked."""
        word = ChannelDropped(self.next_token(), opening.record.name, opening.channel)
        self.promises.drop(word.name, word.channel, LeaseClaim(self.own, word.token))
        for number in opening.electorate.asked:
            self.say(number, word)

    def _end(self, opening: Opening, end: End, opened: Opened) -> None:
        name = opening.record.name
        silent = self._silent(opening)
        if end is End.EXISTS:
            opened(_exists(name), silent)
        elif end is End.CONTESTED:
            opened(_contested(name), silent)
        elif end is End.NO_MAJORITY:
            opened(self._no_majority(opening, silent), silent)
        else:
            self._opened(opening, opened, silent)

    def _opened(self, opening: Opening, opened: Opened, silent: list[str]) -> None:
        channel = self.table.add(opening.channel, opening.record)
        if channel is None:
            self._drop(opening)
            opened(TooMany("this gateway is at its limit of known channels"), silent)
            return
        self.holding.begin(channel, opening)
        opened(channel, silent)
        # Announce before the next tick: the opener may invite members elsewhere right away.
        self.holding.announce(channel)
        if not self.admissions.count(hexadecimal(channel.id)):
            # The opener has disconnected or may not be a member, so the channel is empty.
            self.holding.end(channel)

    def _silent(self, opening: Opening) -> list[str]:
        """Return the names of gateways that did not answer or were unreachable."""
        if self.mesh is None:
            return []
        asked = opening.electorate.asked
        silent = set(opening.silent)
        names = [
            member.advert.name
            for member in self.mesh.members.others()
            if member.number in silent
            or (member.number not in asked and not member.advert.is_leaving)
        ]
        return sorted(names)

    def _no_majority(self, opening: Opening, silent: list[str]) -> NoMajority:
        agreed = sum(each == CONFIRMED for each in opening.verdicts.values())
        named = f"; not reached or silent: {', '.join(silent)}" if silent else ""
        if opening.verdicts[0] == FAILED:
            named = f"; {self._service.gateway} cannot store its lease"
        return NoMajority(
            f"{agreed} of {len(self.voters)} gateways agree to a protected channel,"
            f" {self.voters.majority} required{named}"
        )

    def _judged(self, claim: LeaseClaim, record: Record) -> tuple[str, int]:
        """Return this gateway's vote on a channel that another gateway opens."""
        epoch = self.promises.epoch(record.name)
        if not record.is_sound or record.owner != self.node_of(claim.holder):
            self.refuse("BadChannel")
            return EXISTS, epoch
        if self.table.named(record.name):
            return EXISTS, epoch
        channel = record.channel(self._service.name)
        note = Note(record.name, record.epoch, channel)
        return self.promises.open(note, claim, self.now_ns), epoch

    # Closing.

    def _close(self, word: ChannelClosedNotice) -> None:
        record = word.record
        channel = record.channel(self._service.name)
        known = self.table.get(channel)
        if known is not None and known.record.epoch > record.epoch:
            # It was reopened in a later epoch.
            return
        if len(self._closed) < CLOSED_MAX:
            self._closed[channel] = (word, self.now_ns + CLOSED_NS)
        error = ClosedForAll(f"the channel {record.name.decode(errors='replace')!r} was closed")
        self.admissions.dismiss(hexadecimal(channel), error)
        if known is not None:
            self.holding.end(known)
            self.table.forget(channel)
        self.promises.end(record.name, channel)

    def _see_who_lost(self) -> None:
        for key in self.admissions.ids():
            channel = self.table.get(bytes.fromhex(key.decode()))
            if channel is not None and self._has_lost(channel):
                name = channel.record.name.decode(errors="replace")
                error = ChannelLost(f"another channel has the name {name!r} now")
                self.admissions.dismiss(key, error)

    def _has_lost(self, channel: KnownChannel) -> bool:
        """Return whether a conflicting channel exists and takes precedence."""
        rivals = [
            each
            for each in self.table.named(channel.record.name)
            if each is not channel and each.record.is_protected
        ]
        if not rivals or not channel.record.is_protected:
            return bool(rivals)
        standing = self.holding.standing(channel.id)
        majority = self.voters.majority
        if standing is None or standing.is_confirmed(majority, self.now_ns):
            return False
        if standing.is_refused(majority, self.now_ns):
            return True
        is_long_ago = self.now_ns - standing.confirmed_ns >= LEASE_NS
        return is_long_ago and max(each.rank for each in rivals) > channel.rank

    def _preference(self, channel: KnownChannel) -> tuple[bool, bool, tuple[bool, int, int]]:
        is_confirmed = self.holding.is_confirmed(channel.id)
        return channel.record.is_protected, is_confirmed, channel.rank

    def _is_gone(self, number: int) -> bool:
        if number == self.own:
            return False
        member = None if self.mesh is None else self.mesh.members.numbered(number)
        return member is None or member.advert.is_leaving


def hexadecimal(channel: bytes) -> bytes:
    """Return a channel id as subjects contain it."""
    return channel.hex().encode()


def _exists(name: bytes) -> ChannelExists:
    return ChannelExists(f"there is a channel {name.decode()!r} already")


def _contested(name: bytes) -> ChannelContested:
    return ChannelContested(f"another open of channel {name.decode()!r} is in progress: try again")
