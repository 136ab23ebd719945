"""The channels that have members at this gateway, as it tells all others of them.

What is said is a claim to the names: others answer whether they agree, or that they do not know the
channel yet, and are then told what it is.
"""

from typing import TYPE_CHECKING, NamedTuple

from weft.broker.channel_subjects import start_of
from weft.mesh.channels.directory import Channel
from weft.mesh.channels.lease_votes import Standing
from weft.mesh.channels.leases import LEASE_NS, Claim, Note
from weft.mesh.channels.open_vote import Opening
from weft.mesh.channels.protocol import (
    HELD_MAX,
    RECORDS_MAX,
    ChannelDropped,
    ChannelRecords,
    ChannelsHeld,
    ChannelsSeen,
    ChannelWord,
    Held,
)

if TYPE_CHECKING:
    from weft.mesh.channels.coordinator import Channels

# How often everybody is told of everything.
HOLD_NS = 1_500_000_000
# Newcomers are looked for so often.
LOOK_NS = 100_000_000
# So many subjects are looked at to say how much is said in all channels.
FLOWS_MAX = 10_000


class Said(NamedTuple):
    """What everybody was told by one token, and when."""

    channels: tuple[bytes, ...]
    time_ns: int


class Holding:
    """Tells of the channels of one gateway, and knows who agrees."""

    def __init__(self, channels: "Channels") -> None:
        self._channels = channels
        self._standings: dict[bytes, Standing] = {}
        self._changed: dict[bytes, None] = {}
        self._said: dict[int, Said] = {}
        self._held_ns = self._look_ns = 0
        # Who was told what a channel is since everybody was last told of everything.
        self._explained: set[tuple[int, bytes]] = set()
        # Those who were told of everything since they are there.
        self._told: set[int] = set()

    def standing(self, channel: bytes) -> Standing | None:
        """Who agrees to a channel that is held here."""
        return self._standings.get(channel)

    def is_confirmed(self, channel: bytes) -> bool:
        """Say if a majority agrees to a channel that is held here."""
        standing = self._standings.get(channel)
        voters = self._channels.voters
        return standing is not None and standing.is_confirmed(
            voters.majority, self._channels.now_ns
        )

    def begin(self, channel: Channel, opening: Opening) -> None:
        """A channel was opened here: those who agreed to that agree to it now."""
        now_ns = self._channels.now_ns
        claim = Claim(self._channels.own, self._channels.next_token())
        self._channels.table.hear(claim, Held(channel.id, 1), now_ns)
        standing = self._standings[channel.id] = Standing(now_ns)
        standing.agree(self._channels.voters.own, opening.since_ns)
        for number in opening.confirmed:
            standing.agree(self._channels.node_of(number), opening.since_ns)

    def announce(self, channel: Channel) -> None:
        """Tell everybody of a channel that they have not heard of yet."""
        others = self._channels.others()
        if self._members(channel.id):
            for number in others:
                self._channels.say(number, ChannelRecords((channel.record,)))
            self._hold([channel.id], others)

    def changed(self, key: bytes) -> None:
        """Members of a channel came or went here."""
        channel = bytes.fromhex(key.decode())
        self._changed[channel] = None
        members = self._members(channel)
        if members:
            channels = self._channels
            claim = Claim(channels.own, channels.next_token())
            channels.table.hear(claim, Held(channel, members), channels.now_ns)

    def end(self, channel: Channel) -> None:
        """Nobody here is a member any more: claim the name no more."""
        self._standings.pop(channel.id, None)
        self._changed.pop(channel.id, None)
        channels = self._channels
        word = ChannelDropped(channels.next_token(), channel.record.name, channel.id)
        self.hear_dropped(channels.own, word)
        for number in channels.others():
            channels.say(number, word)

    def hear_dropped(self, origin: int, word: ChannelDropped) -> None:
        """A gateway has no members of a channel any more, or did not get to open it."""
        claim = Claim(origin, word.token)
        self._channels.promises.drop(word.name, word.channel, claim)
        self._channels.table.drop(claim, word.channel)

    def end_empty(self) -> None:
        """End the channels whose last member here has left since they were last looked at."""
        for channel in list(self._changed):
            known = self._channels.table.get(channel)
            if known is not None and not self._members(channel):
                self.end(known)

    def tick(self) -> None:
        """Tell everybody what changed, newcomers everything, and now and then all of them."""
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
        """Another gateway tells of its channels, or answers what was told of those here."""
        match word:
            case ChannelsHeld(token, held):
                self._hear_held(origin, token, held)
            case ChannelsSeen():
                self._hear_seen(origin, word)
            case ChannelRecords():
                self._hear_records(word)

    # What is said.

    def _hold(self, ids: list[bytes], others: list[int]) -> None:
        """Claim the names of channels, here first."""
        channels = self._channels
        now_ns = channels.now_ns
        held: list[Held] = []
        token = channels.next_token()
        rates = self._rates(ids)
        for channel in ids:
            known = channels.table.get(channel)
            if known is None:
                continue
            held.append(Held(channel, self._members(channel), rates.get(channel, 0)))
            standing = self._standings.setdefault(channel, Standing(now_ns))
            record = known.record
            note = Note(record.name, record.epoch, channel)
            if channels.promises.prolong(note, Claim(channels.own, token), now_ns):
                standing.agree(channels.voters.own, now_ns)
            else:
                standing.refuse(channels.voters.own, now_ns)
            channels.table.hear(Claim(channels.own, token), held[-1], now_ns)
        self._say(tuple(held), others)

    def _say(self, held: tuple[Held, ...], others: list[int]) -> None:
        for at in range(0, len(held), HELD_MAX):
            part = held[at : at + HELD_MAX]
            token = self._channels.next_token()
            self._said[token] = Said(tuple(each.channel for each in part), self._channels.now_ns)
            word = ChannelsHeld(token, part)
            for number in others:
                self._channels.say(number, word)

    def _tell_newcomers(self) -> None:
        if not len(self._channels.admissions):
            # Most gateways have no channels, and may have a thousand others around them.
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
        """How many messages a second are said in channels, as far as there is time to look."""
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

    # What is heard.

    def _hear_held(self, origin: int, token: int, held: tuple[Held, ...]) -> None:
        channels = self._channels
        unknown: list[bytes] = []
        refused: list[bytes] = []
        for each in held:
            known = channels.table.get(each.channel)
            if known is None:
                unknown.append(each.channel)
                closed = channels.closed(each.channel)
                if closed is not None:
                    # It was out of reach when that was said.
                    channels.say(origin, closed)
                continue
            record = known.record
            claim = Claim(origin, token)
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
        """Tell a gateway what channels are; not again and again to one that does not learn it."""
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
