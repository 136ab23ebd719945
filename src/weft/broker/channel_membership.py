"""Who is a member of which channel.

A member is admitted to the id of a channel, which is in the subject of everything that is said in
it: so two channels of one name never mix. What a membership ends for is told to the member.
"""

from collections.abc import Callable

from weft.broker.auth.permissions import PUBLISH, SUBSCRIBE
from weft.broker.channel_subjects import start_of
from weft.broker.replies import error_frame
from weft.broker.routing.router import Subscription
from weft.broker.service import NO_CHANNELS, NOWHERE, Peer
from weft.broker.subscribe import weight_of
from weft.errors import TooMany, WeftError
from weft.wire.frames import Kind

NAME_MAX_BYTES = 127
# A connection may be a member of so many.
JOINED_MAX = 100

_REFUSED = (int(Kind.SUBSCRIBE), 0)


class Admissions:
    """The members of channels among the connections of one service; ids are hexadecimal."""

    def __init__(self) -> None:
        self._members: dict[bytes, dict[int, Peer]] = {}
        # Told of an id when its first member came or any of its members left.
        self.on_change: Callable[[bytes], None] | None = None

    def __len__(self) -> int:
        return len(self._members)

    def ids(self) -> list[bytes]:
        """The channels that have members here."""
        return list(self._members)

    def members(self, channel: bytes) -> list[Peer]:
        """Who was admitted to a channel."""
        return list(self._members.get(channel, {}).values())

    def count(self, channel: bytes) -> int:
        """How many were admitted to a channel."""
        return len(self._members.get(channel, ()))

    def admit(self, peer: Peer, channel: bytes, name: bytes) -> None:
        """Make a connection a member.

        Raises:
            TooMany: it is a member of as many as it may.
        """
        if channel in peer.channels:
            return
        if len(peer.channels) >= JOINED_MAX:
            raise TooMany(f"a connection is a member of {JOINED_MAX} channels at most")
        if peer.channels is NO_CHANNELS:
            peer.channels = {}
        peer.channels[channel] = name
        self._members.setdefault(channel, {})[peer.number] = peer
        self._changed(channel)

    def leave(self, peer: Peer, channel: bytes) -> None:
        """Make a connection a member no more, and take back what it subscribed to there."""
        if channel not in peer.channels:
            return
        router = peer.service.router
        for pattern, group, _, _ in subscriptions_in(peer, channel):
            router.unsubscribe(peer.outbox, pattern, group)
            peer.weight -= weight_of(pattern)
        del peer.channels[channel]
        # Its last message may have gone there: what it may do is looked up anew.
        peer.route = NOWHERE
        members = self._members[channel]
        del members[peer.number]
        if not members:
            del self._members[channel]
        self._changed(channel)

    def leave_all(self, peer: Peer) -> None:
        """A connection is over: so are its memberships."""
        for channel in list(peer.channels):
            self.leave(peer, channel)

    def dismiss(self, channel: bytes, error: WeftError) -> None:
        """Tell all members that they are members no more, and why."""
        for peer in self.members(channel):
            told = [(pattern, group) for pattern, group, _, _ in subscriptions_in(peer, channel)]
            everything = (start_of(channel) + b">", b"")
            self.leave(peer, channel)
            for pattern, group in dict.fromkeys([*told, everything]):
                peer.owe(error_frame(peer, pattern, group, _REFUSED, error))

    def _changed(self, channel: bytes) -> None:
        if self.on_change is not None:
            self.on_change(channel)


def subscriptions_in(peer: Peer, channel: bytes) -> list[Subscription]:
    """What a member subscribed to in a channel."""
    start = start_of(channel)
    found = peer.service.router.subscriptions(peer.outbox)
    return [each for each in found if each.pattern.startswith(start)]


def may_open(peer: Peer, name: bytes) -> bool:
    """Say if a connection may open a channel of this name."""
    rights = peer.rights
    if rights is None:
        return True
    inside = name + b".>"
    return rights.allows(PUBLISH, inside) and rights.allows(SUBSCRIBE, inside)


def may_join(peer: Peer, name: bytes) -> bool:
    """Say if a connection may be a member of a channel of this name."""
    rights = peer.rights
    if rights is None:
        return True
    inside = name + b".>"
    return rights.allows(PUBLISH, inside) or rights.allows(SUBSCRIBE, inside)
