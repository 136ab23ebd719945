"""Every channel that has members anywhere in the mesh, as this gateway knows it."""

from collections.abc import Callable
from typing import NamedTuple

from weft.mesh.channels.leases import Claim
from weft.mesh.channels.protocol import Held, Record

# A gateway that was not heard of for so long does not hold its channels any more.
STALE_NS = 6_000_000_000
CHANNELS_MAX = 65_536


class Place(NamedTuple):
    """A gateway that has members of a channel, and when it last said so."""

    members: int
    message_rate: int
    heard_ns: int
    # Of the word that said so: an older one that comes later does not count.
    token: int


class Channel:
    """One channel, and where its members are, by the numbers of their gateways."""

    def __init__(self, channel: bytes, record: Record) -> None:
        self.id = channel
        self.record = record
        self.places: dict[int, Place] = {}

    @property
    def members(self) -> int:
        """How many there are, everywhere."""
        return sum(place.members for place in self.places.values())

    @property
    def rank(self) -> tuple[bool, int, int]:
        """What is larger for the one of two with the same name that stays, if nothing else says."""
        record = self.record
        return record.is_protected, record.epoch, -int.from_bytes(self.id)


class ChannelTable:
    """The channels of a service, by id and by name."""

    def __init__(self) -> None:
        self._by_id: dict[bytes, Channel] = {}
        self._by_name: dict[bytes, dict[bytes, Channel]] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def all(self) -> list[Channel]:
        """Every channel that has members somewhere."""
        return [each for each in self._by_id.values() if each.places]

    def get(self, channel: bytes) -> Channel | None:
        """The one with an id."""
        return self._by_id.get(channel)

    def named(self, name: bytes) -> list[Channel]:
        """Those of one name: one, unless a race or a mesh that came apart left more."""
        return [each for each in self._by_name.get(name, {}).values() if each.places]

    def add(self, channel: bytes, record: Record) -> Channel | None:
        """Know a channel; None if there are too many.

        Of those without a password that were opened apart, all know the same as the first.
        """
        known = self._by_id.get(channel)
        if known is None:
            if len(self._by_id) >= CHANNELS_MAX:
                return None
            known = self._by_id[channel] = Channel(channel, record)
            self._by_name.setdefault(record.name, {})[channel] = known
        elif _age(record) < _age(known.record):
            known.record = record
        return known

    def hear(self, claim: Claim, held: Held, now_ns: int) -> Channel | None:
        """A gateway says how many members a channel has there; None if it is not known here."""
        channel = self._by_id.get(held.channel)
        if channel is not None:
            last = channel.places.get(claim.holder)
            if last is None or last.token <= claim.token:
                place = Place(held.members, held.message_rate, now_ns, claim.token)
                channel.places[claim.holder] = place
        return channel

    def drop(self, claim: Claim, channel: bytes) -> None:
        """A gateway has no members of a channel any more."""
        known = self._by_id.get(channel)
        if known is not None:
            last = known.places.get(claim.holder)
            if last is not None and last.token <= claim.token:
                del known.places[claim.holder]
            self._forget_if_empty(known)

    def forget(self, channel: bytes) -> None:
        """A channel is no more."""
        known = self._by_id.pop(channel, None)
        if known is not None:
            named = self._by_name[known.record.name]
            del named[channel]
            if not named:
                del self._by_name[known.record.name]

    def expire(self, now_ns: int, is_gone: Callable[[int], bool]) -> None:
        """Forget places that were not heard of for too long, and those whose gateway has left."""
        for channel in list(self._by_id.values()):
            for number, place in list(channel.places.items()):
                if now_ns - place.heard_ns >= STALE_NS or is_gone(number):
                    del channel.places[number]
            self._forget_if_empty(channel)

    def _forget_if_empty(self, channel: Channel) -> None:
        if not channel.places:
            self.forget(channel.id)


def _age(record: Record) -> tuple[int, bytes]:
    return record.epoch, record.owner
