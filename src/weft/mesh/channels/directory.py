"""Directory of every channel that has members anywhere in the mesh."""

from collections.abc import Callable
from typing import NamedTuple

from weft.mesh.channels.leases import LeaseClaim
from weft.mesh.channels.protocol import ChannelAnnouncement, Record

# Members of a gateway count for this long after its last announcement.
STALE_NS = 6_000_000_000
CHANNELS_MAX = 65_536


class GatewayMembers(NamedTuple):
    """Members of a channel at one gateway, as last announced."""

    members: int
    message_rate: int
    heard_ns: int
    # Token of that announcement; older ones that arrive later are ignored.
    token: int


class KnownChannel:
    """One channel with its members by gateway number."""

    def __init__(self, channel: bytes, record: Record) -> None:
        self.id = channel
        self.record = record
        self.places: dict[int, GatewayMembers] = {}

    @property
    def members(self) -> int:
        """Number of members in the mesh."""
        return sum(place.members for place in self.places.values())

    @property
    def rank(self) -> tuple[bool, int, int]:
        """Precedence among channels of one name if no quorum decides: the largest."""
        record = self.record
        return record.is_protected, record.epoch, -int.from_bytes(self.id)


class ChannelTable:
    """Channels of a service, by id and by name."""

    def __init__(self) -> None:
        self._by_id: dict[bytes, KnownChannel] = {}
        self._by_name: dict[bytes, dict[bytes, KnownChannel]] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def all(self) -> list[KnownChannel]:
        """Return every channel that has members."""
        return [each for each in self._by_id.values() if each.places]

    def get(self, channel: bytes) -> KnownChannel | None:
        """Return the channel with an id."""
        return self._by_id.get(channel)

    def named(self, name: bytes) -> list[KnownChannel]:
        """Return the channels of a name; more than one after a race or a partition."""
        return [each for each in self._by_name.get(name, {}).values() if each.places]

    def add(self, channel: bytes, record: Record) -> KnownChannel | None:
        """Add a channel; None if the table is full.

        Unprotected channels of a name share an id: the record with the lowest epoch is kept.
        """
        known = self._by_id.get(channel)
        if known is None:
            if len(self._by_id) >= CHANNELS_MAX:
                return None
            known = self._by_id[channel] = KnownChannel(channel, record)
            self._by_name.setdefault(record.name, {})[channel] = known
        elif _age(record) < _age(known.record):
            known.record = record
        return known

    def hear(
        self, claim: LeaseClaim, held: ChannelAnnouncement, now_ns: int
    ) -> KnownChannel | None:
        """Update the members at a gateway; None if the channel is unknown."""
        channel = self._by_id.get(held.channel)
        if channel is not None:
            last = channel.places.get(claim.holder)
            if last is None or last.token <= claim.token:
                place = GatewayMembers(held.members, held.message_rate, now_ns, claim.token)
                channel.places[claim.holder] = place
        return channel

    def drop(self, claim: LeaseClaim, channel: bytes) -> None:
        """Remove the members at a gateway."""
        known = self._by_id.get(channel)
        if known is not None:
            last = known.places.get(claim.holder)
            if last is not None and last.token <= claim.token:
                del known.places[claim.holder]
            self._forget_if_empty(known)

    def forget(self, channel: bytes) -> None:
        """Remove a channel."""
        known = self._by_id.pop(channel, None)
        if known is not None:
            named = self._by_name[known.record.name]
            del named[channel]
            if not named:
                del self._by_name[known.record.name]

    def expire(self, now_ns: int, is_gone: Callable[[int], bool]) -> None:
        """Remove members of stale and departed gateways."""
        for channel in list(self._by_id.values()):
            for number, place in list(channel.places.items()):
                if now_ns - place.heard_ns >= STALE_NS or is_gone(number):
                    del channel.places[number]
            self._forget_if_empty(channel)

    def _forget_if_empty(self, channel: KnownChannel) -> None:
        if not channel.places:
            self.forget(channel.id)


def _age(record: Record) -> tuple[int, bytes]:
    return record.epoch, record.owner
