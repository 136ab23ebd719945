"""What this gateway has agreed to: for each name the channel that may have it, and for how long.

A promise to one channel keeps every other one of its name out until it has run out: each gateway
that holds the channel has it prolonged. Whoever opens a channel needs an epoch that was never
promised here before. A promise is written down before it is told, so that a gateway that begins
anew keeps it.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

# For how long a promise holds. Its holder counts on less: clocks do not run alike.
LEASE_NS = 6_000_000_000
# Of so many names it is known what was promised; the oldest without a holder are forgotten first.
NAMES_MAX = 65_536

CONFIRMED = "confirmed"
# Another channel of this name is being opened, or has it.
CONTESTED = "contested"
# A later epoch than this was promised before.
OUTDATED = "outdated"
# It cannot be written down.
FAILED = "failed"


class Note(NamedTuple):
    """What is written down of a promise."""

    name: bytes
    epoch: int
    channel: bytes


class Claim(NamedTuple):
    """A gateway that claims a name for a channel, and by which of its words: later ones are larger.

    Words may overtake each other: an older one must not take back what a later one asked for.
    """

    holder: int
    token: int


class Hold(NamedTuple):
    """Until when a gateway was promised something, and by which word it last asked for it."""

    ends_ns: int
    token: int


class Promise:
    """The last that was promised for one name; `holds` says to whom, and until when."""

    def __init__(self, epoch: int, channel: bytes) -> None:
        # The last epoch that was promised to anybody.
        self.epoch = epoch
        self.channel = channel
        self.holds: dict[int, Hold] = {}

    def is_free_for(self, channel: bytes, now_ns: int) -> bool:
        """Say if a channel may have the name, as far as others claim it."""
        return channel == self.channel or all(
            hold.ends_ns <= now_ns for hold in self.holds.values()
        )


_NONE = Hold(0, 0)

# Writes a note down so that it is safe; raises OSError if it cannot be.
Keep = Callable[[Note], None]


class Promises:
    """The promises of one gateway; times are those of its own clock."""

    def __init__(self, keep: Keep | None = None) -> None:
        self._keep = keep
        self._names: dict[bytes, Promise] = {}

    def __len__(self) -> int:
        return len(self._names)

    def recall(self, notes: Iterable[Note], keep: Keep, now_ns: int) -> None:
        """Keep what an earlier life of this gateway promised: as long as if it were said now."""
        self._keep = keep
        for note in notes:
            promise = self._names[note.name] = Promise(note.epoch, note.channel)
            promise.holds[0] = Hold(now_ns + LEASE_NS, 0)

    def notes(self) -> list[Note]:
        """Everything that is to be known in another life."""
        return [Note(name, each.epoch, each.channel) for name, each in self._names.items()]

    def epoch(self, name: bytes) -> int:
        """The last epoch that was promised for a name."""
        promise = self._names.get(name)
        return 0 if promise is None else promise.epoch

    def open(self, note: Note, claim: Claim, now_ns: int) -> str:
        """Promise a name to a channel that is to be opened; what came of it."""
        promise = self._names.get(note.name)
        if promise is not None:
            if not promise.is_free_for(note.channel, now_ns):
                return CONTESTED
            if note.epoch <= promise.epoch and note.channel != promise.channel:
                return OUTDATED
        return self._promise(note, claim, now_ns)

    def prolong(self, note: Note, claim: Claim, now_ns: int) -> bool:
        """Promise a name to a channel that is there, for longer; whether that can be.

        An earlier epoch will do: a later one was promised to somebody who did not get the name.
        """
        promise = self._names.get(note.name)
        if promise is not None and not promise.is_free_for(note.channel, now_ns):
            return False
        return self._promise(note, claim, now_ns) == CONFIRMED

    def drop(self, name: bytes, channel: bytes, claim: Claim) -> None:
        """A gateway does not claim a name for a channel any more."""
        promise = self._names.get(name)
        if promise is not None and promise.channel == channel:
            hold = promise.holds.get(claim.holder)
            if hold is not None and hold.token <= claim.token:
                del promise.holds[claim.holder]

    def end(self, name: bytes, channel: bytes) -> None:
        """A channel is no more, whoever claimed its name for it."""
        promise = self._names.get(name)
        if promise is not None and promise.channel == channel:
            promise.holds.clear()

    def _promise(self, note: Note, claim: Claim, now_ns: int) -> str:
        promise = self._names.get(note.name)
        epoch = note.epoch if promise is None else max(promise.epoch, note.epoch)
        if promise is None or (promise.epoch, promise.channel) != (epoch, note.channel):
            if self._keep is not None:
                try:
                    self._keep(note._replace(epoch=epoch))
                except OSError:
                    return FAILED
            self._make_room(now_ns)
            # The last place: the oldest is the first.
            self._names.pop(note.name, None)
            promise = self._names[note.name] = Promise(epoch, note.channel)
        last = promise.holds.get(claim.holder, _NONE)
        promise.holds[claim.holder] = Hold(now_ns + LEASE_NS, max(last.token, claim.token))
        return CONFIRMED

    def _make_room(self, now_ns: int) -> None:
        if len(self._names) < NAMES_MAX:
            return
        for name, promise in self._names.items():
            if promise.is_free_for(b"", now_ns):
                del self._names[name]
                return
