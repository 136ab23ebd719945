"""Announces the channels with members at this gateway to all other gateways.

Each announcement renews the leases of the channel names. The receivers answer with their votes, or
that they do not know a channel yet, in which case they get its record.
"""

from typing import TYPE_CHECKING, NamedTuple

from weft.broker.channel_subjects import start_of
from weft.mesh.channels.directory import KnownChannel
from weft.mesh.channels.lease_votes import Standing
from weft.mesh.channels.leases import LEASE_NS, LeaseClaim, Note
from weft.mesh.channels.open_vote import Opening
from weft.mesh.channels.protocol import (
    HELD_MAX,
    RECORDS_MAX,
    ChannelAnnouncement,
    ChannelDropped,
    ChannelRecords,
    ChannelsHeld,
    ChannelsSeen,
    ChannelWord,
)

if TYPE_CHECKING:
    from weft.mesh.channels.coordinator import ChannelCoordinator

# Interval at which all channels are announced to all gateways.
HOLD_NS = 1_500_000_000
# Interval at which new gateways are looked for.
LOOK_NS = 100_000_000
# Bound on the subjects that are examined to compute the message rates of channels.
FLOWS_MAX = 10_000


class SentAnnouncement(NamedTuple):
    """Channels that were announced with one token, and the time."""

    channels: tuple[bytes, ...]
    time_ns: int


class Holding:
    """Announces the channels of one gateway and tracks their lease votes."""

    def __init__(self, channels: "ChannelCoordinator") -> None:
        self._channels = channels
        self._standings: dict[bytes, Standing] = {}
        self._changed: dict[bytes, None] = {}
        self._said: dict[int, SentAnnouncement] = {}
        self._held_ns = self._look_ns = 0
        # Gateways that got the record of a channel since the last full announcement.
        self._explained: set[tuple[int, bytes]] = set()
        # Reachable gateways that have had a full announcement.
        self._told: set[int] = set()

    def standing(self, channel: bytes) -> Standing | None:
        """Return the lease votes of a local channel."""
        return self._standings.get(channel)

    def is_confirmed(self, channel: bytes) -> bool:
        """Return whether a quorum currently agrees to a local channel."""
        standing = self._standings.get(channel)
        voters = self._channels.voters
        return standing is not None and standing.is_confirmed(
            voters.majority, self._channels.now_ns
        )

    def begin(self, channel: KnownChannel, opening: Opening) -> None:
        """Hold a new channel; the votes that opened it count as its first lease votes."""
        now_ns = self._channels.now_ns
        claim = LeaseClaim(self._channels.own, self._channels.next_token())
        self._channels.table.hear(claim, ChannelAnnouncement(channel.id, 1), now_ns)
        standing = self._standings[channel.id] = Standing(now_ns)
        standing.agree(self._channels.voters.own, opening.since_ns)
        for number in opening.confirmed:
            standing.agree(self._channels.node_of(number), opening.since_ns)

    def announce(self, channel: KnownChannel) -> None:
        """Send the record of a new channel to all gateways, then announce it."""
        others = self._channels.others()
        if self._members(channel.id):
            for number in others:
                self._channels.say(number, ChannelRecords((channel.record,)))
            self._hold([channel.id], others)

    def changed(self, key: bytes) -> None:
        """Note that the number of local members of a channel has changed."""
        channel = bytes.fromhex(key.decode())
        self._changed[channel] = None
        members = self._members(channel)
        if members:
            channels = self._channels
            claim = LeaseClaim(channels.own, channels.next_token())
            channels.table.hear(claim, ChannelAnnouncement(channel, members), channels.now_ns)

    def end(self, channel: KnownChannel) -> None:
        """Release the name of a channel that has no local members."""
        self._standings.pop(channel.id, None)
        self._changed.pop(channel.id, None)
        channels = self._channels
        word = ChannelDropped(channels.next_token(), channel.record.name, channel.id)
        self.hear_dropped(channels.own, word)
        for number in channels.others():
            channels.say(number, word)

    def hear_dropped(self, origin: int, word: ChannelDropped) -> None:
        """Remove a gateway from a channel: no members there, or its open attempt failed."""
        claim = LeaseClaim(origin, word.token)
        self._channels.promises.drop(word.name, word.channel, claim)
        self._channels.table.drop(claim, word.channel)

    def end_empty(self) -> None:
        """Release changed channels that have no local members."""
        for channel in list(self._changed):
            known = self._channels.table.get(channel)
            if known is not None and not self._members(channel):
                self.end(known)

    def tick(self) -> None:
        """Announce changes to all gateways, and periodically or to new gateways all channels."""
        channels = self._channels
        now_ns = channels.now_ns
        self.end_empty()
        changed, self._changed = list(self._changed), {}
        if now_ns - self._held_ns >= HOLD_NS:
            self._held_ns = now_ns
            self._forget_said()
            self._explained.clear()
            self._hold(self._ids(), channels.others())
        elif changed:
            self._hold([each for each in changed if self._members(each)], channels.others())
        if now_ns - self._look_ns >= LOOK_NS:
            self._look_ns = now_ns
            self._tell_newcomers()

    def hear(self, origin: int, word: ChannelWord) -> None:
        """Handle an announcement of another gateway, or its answer to a local one."""
        match word:
            case ChannelsHeld(token, held):
                self._hear_held(origin, token, held)
            case ChannelsSeen():
                self._hear_seen(origin, word)
            case ChannelRecords():
                self._hear_records(word)

    # Outbound.

    def _hold(self, ids: list[bytes], others: list[int]) -> None:
        """Announce channels, renewing their leases at this gateway first."""
        channels = self._channels
        now_ns = channels.now_ns
        held: list[ChannelAnnouncement] = []
        token = channels.next_token()
        rates = self._rates(ids)
        for channel in ids:
            known = channels.table.get(channel)
            if known is None:
                continue
            held.append(ChannelAnnouncement(channel, self._members(channel), rates.get(channel, 0)))
            standing = self._standings.setdefault(channel, Standing(now_ns))
            record = known.record
            note = Note(record.name, record.epoch, channel)
            if channels.promises.prolong(note, LeaseClaim(channels.own, token), now_ns):
                standing.agree(channels.voters.own, now_ns)
            else:
                standing.refuse(channels.voters.own, now_ns)
            channels.table.hear(LeaseClaim(channels.own, token), held[-1], now_ns)
        self._say(tuple(held), others)

    def _say(self, held: tuple[ChannelAnnouncement, ...], others: list[int]) -> None:
        for at in range(0, len(held), HELD_MAX):
            part = held[at : at + HELD_MAX]
            token = self._channels.next_token()
            self._said[token] = SentAnnouncement(
                tuple(each.channel for each in part), self._channels.now_ns
            )
            word = ChannelsHeld(token, part)
            for number in others:
                self._channels.say(number, word)

    def _tell_newcomers(self) -> None:
        if not len(self._channels.admissions):
            # Common case: gateways without channels among up to a thousand others.
            self._told.clear()
            return
        there = set(self._channels.others())
        new = there - self._told
        self._told = there
        if new:
            self._hold(self._ids(), sorted(new))

    def _forget_said(self) -> None:
        oldest_ns = self._channels.now_ns - LEASE_NS
        self._said = {token: said for token, said in self._said.items() if said.time_ns > oldest_ns}

    def _ids(self) -> list[bytes]:
        return [bytes.fromhex(key.decode()) for key in self._channels.admissions.ids()]

    def _members(self, channel: bytes) -> int:
        return self._channels.admissions.count(channel.hex().encode())

    def _rates(self, ids: list[bytes]) -> dict[bytes, int]:
        """Return the messages per second of each channel, examining up to FLOWS_MAX subjects."""
        admissions = self._channels.admissions
        left = FLOWS_MAX
        rates: dict[bytes, int] = {}
        for channel in ids:
            key = channel.hex().encode()
            start = start_of(key)
            rate = 0.0
            for peer in admissions.members(key):
                flows = {} if peer.meter is None or left <= 0 else peer.meter.flows()
                left -= len(flows) + 1
                for subject, flow in flows.items():
                    if subject.startswith(start):
                        rate += flow.message_rate(self._channels.now_ns)
            rates[channel] = round(rate)
        return rates

    # Inbound.

    def _hear_held(self, origin: int, token: int, held: tuple[ChannelAnnouncement, ...]) -> None:
        channels = self._channels
        unknown: list[bytes] = []
        refused: list[bytes] = []
        for each in held:
            known = channels.table.get(each.channel)
            if known is None:
                unknown.append(each.channel)
                closed = channels.closed(each.channel)
                if closed is not None:
                    # It was unreachable when the channel was closed.
                    channels.say(origin, closed)
                continue
            record = known.record
            claim = LeaseClaim(origin, token)
            channels.table.hear(claim, each, channels.now_ns)
            note = Note(record.name, record.epoch, each.channel)
            if not channels.promises.prolong(note, claim, channels.now_ns):
                refused.append(each.channel)
        channels.say(origin, ChannelsSeen(token, tuple(unknown), tuple(refused)))

    def _hear_seen(self, origin: int, word: ChannelsSeen) -> None:
        channels = self._channels
        said = self._said.get(word.token)
        node = channels.node_of(origin)
        if said is None or node not in channels.voters:
            return
        unknown, refused = set(word.unknown), set(word.refused)
        for channel in said.channels:
            standing = self._standings.get(channel)
            if standing is None or channel in unknown:
                continue
            if channel in refused:
                standing.refuse(node, said.time_ns)
            else:
                standing.agree(node, said.time_ns)
        self._explain(origin, [each for each in said.channels if each in unknown])

    def _explain(self, origin: int, ids: list[bytes]) -> None:
        """Send channel records to a gateway, at most once per full announcement."""
        ids = [channel for channel in ids if (origin, channel) not in self._explained]
        self._explained.update((origin, channel) for channel in ids)
        found = [self._channels.table.get(channel) for channel in ids]
        records = tuple(known.record for known in found if known is not None)
        for at in range(0, len(records), RECORDS_MAX):
            self._channels.say(origin, ChannelRecords(records[at : at + RECORDS_MAX]))
        held = [channel for channel in ids if self._members(channel)]
        if records:
            self._hold(held, [origin])

    def _hear_records(self, word: ChannelRecords) -> None:
        channels = self._channels
        for record in word.records:
            channel = record.channel(channels.service.name)
            if not record.is_sound:
                channels.refuse("BadChannel")
                continue
            closed = channels.closed(channel)
            if closed is None or record.epoch > closed.record.epoch:
                channels.table.add(channel, record)
