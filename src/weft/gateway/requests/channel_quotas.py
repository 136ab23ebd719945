"""Channel quotas: the share of each key in the channels that one gateway holds and opens.

Without keys nothing is counted: the limits of each connection are enough.
"""

from weft.broker.auth.key_connections import holder_of
from weft.broker.auth.key_quota import KeyQuota
from weft.broker.channel_membership import Admissions
from weft.broker.service import Peer, Service
from weft.errors import TooMany, WeftError
from weft.mesh.channels.coordinator import HELD_HERE_MAX, OPENINGS_MAX


class ChannelShares:
    """Channels held here and channels being opened, counted by key."""

    def __init__(self, service: Service, admissions: Admissions) -> None:
        self._service = service
        self._admissions = admissions
        self._held = KeyQuota("channels with members here")
        self._opening = KeyQuota("channels that are being opened")
        # Holder that a channel counts for, by channel id: the key of its first member here.
        self._holders: dict[bytes, str] = {}

    def begin(self, peer: Peer) -> None:
        """Count a channel that is being opened.

        Raises:
            TooMany: The key has its share of openings, or of channels.
        """
        if peer.key is None:
            return
        holder = holder_of(peer, 0)
        self._opening.check(holder, OPENINGS_MAX, self._service.limits)
        self._check(holder)
        self._opening.add(holder)

    def end(self, peer: Peer) -> None:
        """End the count of begin()."""
        if peer.key is not None:
            self._opening.add(holder_of(peer, 0), -1)

    def problem(self, peer: Peer, channel: bytes) -> WeftError | None:
        """Return why a peer may not be the first member of a channel here; None if it may."""
        if peer.key is None or self._admissions.count(channel):
            return None
        try:
            self._check(holder_of(peer, 0))
        except TooMany as error:
            return error
        return None

    def admitted(self, peer: Peer, channel: bytes) -> None:
        """Count a channel for its first member's key; called for each new member."""
        if peer.key is not None and channel not in self._holders:
            holder = self._holders[channel] = holder_of(peer, 0)
            self._held.add(holder)

    def expire(self) -> None:
        """Stop counting channels without members here; called about once a second."""
        for channel in [each for each in self._holders if not self._admissions.count(each)]:
            self._held.add(self._holders.pop(channel), -1)

    def _check(self, holder: str) -> None:
        limits = self._service.limits
        if self._held.count(holder) >= limits.share_of(HELD_HERE_MAX):
            # Some channels may have ended since the last call.
            self.expire()
        self._held.check(holder, HELD_HERE_MAX, limits)
