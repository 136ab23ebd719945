"""Members of channels.

A member is admitted to a channel id, which is part of every subject in the channel, so that two
channels of one name never mix. When a membership ends, the member is sent the reason.
"""

from collections.abc import Callable

from weft.broker.auth.permissions import PUBLISH, SUBSCRIBE
from weft.broker.channel_subjects import start_of
from weft.broker.replies import error_frame
from weft.broker.routing.router import ListedSubscription
from weft.broker.service import NO_CHANNELS, NOWHERE, Peer
from weft.broker.subscribe import weight_of
from weft.errors import TooMany, WeftError
from weft.wire.frames import Kind

NAME_MAX_BYTES = 127
# Channels that a connection may be a member of.
JOINED_MAX = 100

_REFUSED = (int(Kind.SUBSCRIBE), 0)


class Admissions:
    """Table of the channel members among the connections of one service; ids are hexadecimal."""

    def __init__(self) -> None:
        self._members: dict[bytes, dict[int, Peer]] = {}
        # Called with an id after its first member joined or any of its members left.
        self.on_change: Callable[[bytes], None] | None = None

    def __len__(self) -> int:
        return len(self._members)

    def ids(self) -> list[bytes]:
        """The channels that have members at this gateway."""
        return list(self._members)

    def members(self, channel: bytes) -> list[Peer]:
        """The members of a channel."""
        return list(self._members.get(channel, {}).values())

    def count(self, channel: bytes) -> int:
        """The number of members of a channel."""
        return len(self._members.get(channel, ()))

    def admit(self, peer: Peer, channel: bytes, name: bytes) -> None:
        """Make a connection a member of a channel.

        Raises:
            TooMany: it is a member of 100 channels already.
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
        """End a membership and its subscriptions."""
        if channel not in peer.channels:
            return
        router = peer.service.router
        for pattern, group, _, _ in subscriptions_in(peer, channel):
            router.unsubscribe(peer.outbox, pattern, group)
            peer.weight -= weight_of(pattern)
        del peer.channels[channel]
        # Its cached route may lead into the channel: look the route and the permissions up again.
        peer.route = NOWHERE
        members = self._members[channel]
        del members[peer.number]
        if not members:
            del self._members[channel]
        self._changed(channel)

    def leave_all(self, peer: Peer) -> None:
        """End all memberships of a connection."""
        for channel in list(peer.channels):
            self.leave(peer, channel)

    def dismiss(self, channel: bytes, error: WeftError) -> None:
        """End all memberships of a channel and send each member the error."""
        for peer in self.members(channel):
            told = [(pattern, group) for pattern, group, _, _ in subscriptions_in(peer, channel)]
            everything = (start_of(channel) + b">", b"")
            self.leave(peer, channel)
            for pattern, group in dict.fromkeys([*told, everything]):
                peer.owe(error_frame(peer, pattern, group, _REFUSED, error))

    def _changed(self, channel: bytes) -> None:
        if self.on_change is not None:
            self.on_change(channel)


def subscriptions_in(peer: Peer, channel: bytes) -> list[ListedSubscription]:
    """The subscriptions of a member in a channel."""
    start = start_of(channel)
    found = peer.service.router.subscriptions(peer.outbox)
    return [each for each in found if each.pattern.startswith(start)]


def may_open(peer: Peer, name: bytes) -> bool:
    """Return whether a connection may open a channel of this name."""
    rights = peer.rights
    if rights is None:
        return True
    inside = name + b".>"
    return rights.allows(PUBLISH, inside) and rights.allows(SUBSCRIBE, inside)


def may_join(peer: Peer, name: bytes) -> bool:
    """Return whether a connection may join a channel of this name."""
    rights = peer.rights
    if rights is None:
        return True
    inside = name + b".>"
    return rights.allows(PUBLISH, inside) or rights.allows(SUBSCRIBE, inside)
