"""Leases that this gateway has granted: for each channel name, the channel and the expiry.

A lease excludes other channels of the same name until it expires; every gateway that holds the
channel renews it. Opening a channel needs an epoch above all that were granted here. A lease is
stored before it is confirmed, so that it survives a restart.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

# Duration of a lease. Its holder counts on less, because clocks differ in rate.
LEASE_NS = 6_000_000_000
# Bound on remembered names; the oldest without a valid lease is removed first.
NAMES_MAX = 65_536

CONFIRMED = "confirmed"
# Another channel holds or is opening this name.
CONTESTED = "contested"
# A later epoch was granted before.
OUTDATED = "outdated"
# The lease could not be stored.
FAILED = "failed"


class Note(NamedTuple):
    """Stored part of a lease."""

    name: bytes
    epoch: int
    channel: bytes


class LeaseClaim(NamedTuple):
    """Claim of a gateway to a name, with the token of the message that made it.

    Messages can overtake each other: an older claim must not revert a later one.
    """

    holder: int
    token: int


class LeaseHold(NamedTuple):
    """Expiry of a lease for one gateway, and the token of its last claim."""

    ends_ns: int
    token: int


class Promise:
    """Last lease of one name; `holds` has an expiry for each gateway."""

    def __init__(self, epoch: int, channel: bytes) -> None:
        # Highest epoch granted to any channel.
        self.epoch = epoch
        self.channel = channel
        self.holds: dict[int, LeaseHold] = {}

    def is_free_for(self, channel: bytes, now_ns: int) -> bool:
        """Return whether no unexpired lease of another channel blocks the name."""
        return channel == self.channel or all(
            hold.ends_ns <= now_ns for hold in self.holds.values()
        )


_NONE = LeaseHold(0, 0)

# Stores a note durably, or raises OSError.
Keep = Callable[[Note], None]


class Promises:
    """Leases granted by one gateway; times are those of its own clock."""

    def __init__(self, keep: Keep | None = None) -> None:
        self._keep = keep
        self._names: dict[bytes, Promise] = {}

    def __len__(self) -> int:
        return len(self._names)

    def recall(self, notes: Iterable[Note], keep: Keep, now_ns: int) -> None:
        """Restore the leases of before a restart, each for a full duration from now."""
        self._keep = keep
        for note in notes:
            promise = self._names[note.name] = Promise(note.epoch, note.channel)
            promise.holds[0] = LeaseHold(now_ns + LEASE_NS, 0)

    def notes(self) -> list[Note]:
        """Return every lease as it has to be stored."""
        return [Note(name, each.epoch, each.channel) for name, each in self._names.items()]

    def epoch(self, name: bytes) -> int:
        """Return the highest epoch granted for a name, or 0."""
        promise = self._names.get(name)
        return 0 if promise is None else promise.epoch

    def open(self, note: Note, claim: LeaseClaim, now_ns: int) -> str:
        """Vote on a channel that is to be opened; return the verdict."""
        promise = self._names.get(note.name)
        if promise is not None:
            if not promise.is_free_for(note.channel, now_ns):
                return CONTESTED
            if note.epoch <= promise.epoch and note.channel != promise.channel:
                return OUTDATED
        return self._promise(note, claim, now_ns)

    def prolong(self, note: Note, claim: LeaseClaim, now_ns: int) -> bool:
        """Renew the lease of an existing channel; return whether it was granted.

        An epoch below the last is accepted: the later one belongs to an attempt that failed.
        """
        promise = self._names.get(note.name)
        if promise is not None and not promise.is_free_for(note.channel, now_ns):
            return False
        return self._promise(note, claim, now_ns) == CONFIRMED

    def drop(self, name: bytes, channel: bytes, claim: LeaseClaim) -> None:
        """Remove the claim of a gateway to a name."""
        promise = self._names.get(name)
        if promise is not None and promise.channel == channel:
            hold = promise.holds.get(claim.holder)
            if hold is not None and hold.token <= claim.token:
                del promise.holds[claim.holder]

    def end(self, name: bytes, channel: bytes) -> None:
        """Remove all claims to the name of a closed channel."""
        promise = self._names.get(name)
        if promise is not None and promise.channel == channel:
            promise.holds.clear()

    def _promise(self, note: Note, claim: LeaseClaim, now_ns: int) -> str:
        promise = self._names.get(note.name)
        epoch = note.epoch if promise is None else max(promise.epoch, note.epoch)
        if promise is None or (promise.epoch, promise.channel) != (epoch, note.channel):
            if self._keep is not None:
                try:
                    self._keep(note._replace(epoch=epoch))
                except OSError:
                    return FAILED
            self._make_room(now_ns)
            # Appended last: the first entry is the oldest.
            self._names.pop(note.name, None)
            promise = self._names[note.name] = Promise(epoch, note.channel)
        last = promise.holds.get(claim.holder, _NONE)
        promise.holds[claim.holder] = LeaseHold(now_ns + LEASE_NS, max(last.token, claim.token))
        return CONFIRMED

    def _make_room(self, now_ns: int) -> None:
        if len(self._names) < NAMES_MAX:
            return
        for name, promise in self._names.items():
            if promise.is_free_for(b"", now_ns):
                del self._names[name]
                return
