"""Vote on a channel that is being opened at this gateway.

A protected channel needs the agreement of a quorum. An unprotected one needs none, but every
gateway is awaited, because any of them may know a channel of that name.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from weft.mesh.channels.leases import CONFIRMED, FAILED, OUTDATED
from weft.mesh.channels.protocol import Record

# Timeout for the answers.
WAIT_NS = 2_000_000_000
# Bound on attempts, each with a later epoch than any gateway reported.
ATTEMPTS_MAX = 4

# Verdict in addition to those of leases.py: a channel of this name exists.
EXISTS = "exists"


class End(Enum):
    """Result of a vote."""

    OPENED = 1
    EXISTS = 2
    CONTESTED = 3
    NO_MAJORITY = 4
    # To be tried again with a later epoch.
    OUTDATED = 5


class Electorate(NamedTuple):
    """Numbers of the gateways that are asked, and the votes needed, including this gateway's."""

    asked: frozenset[int]
    majority: int


Done = Callable[["Opening", End], None]


class Opening:
    """Attempts to open one channel; `done` gets the result of the last."""

    def __init__(self, record: Record, since_ns: int, done: Done) -> None:
        self.record = record
        self.since_ns = since_ns
        self.done = done
        self.attempts = 0
        self.channel = b""
        self.electorate = Electorate(frozenset(), 1)
        self.verdicts: dict[int, str] = {}
        # Highest epoch that any gateway reported.
        self.epoch = 0

    def begin(self, record: Record, channel: bytes, electorate: Electorate, own: str) -> None:
        """Begin an attempt; `own` is the verdict of this gateway."""
        self.attempts += 1
        self.record = record
        self.channel = channel
        self.electorate = electorate
        self.verdicts = {0: own}

    def hear(self, number: int, verdict: str, epoch: int) -> None:
        """Count the verdict of a gateway; only its first one counts."""
        if number in self.electorate.asked:
            self.verdicts.setdefault(number, verdict)
            self.epoch = max(self.epoch, epoch)

    @property
    def silent(self) -> list[int]:
        """Gateways that have not answered."""
        return sorted(self.electorate.asked - self.verdicts.keys())

    @property
    def confirmed(self) -> list[int]:
        """Other gateways that have agreed."""
        return [number for number, each in self.verdicts.items() if each == CONFIRMED and number]

    def end(self, now_ns: int) -> End | None:
        """Return the result, or None while it is undecided."""
        found = set(self.verdicts.values())
        is_over = not self.silent or now_ns - self.since_ns >= WAIT_NS
        if EXISTS in found:
            return End.EXISTS
        if self.record.is_protected:
            return self._protected(found, is_over=is_over)
        others = found - {CONFIRMED, FAILED}
        if others:
            return self._refused(others)
        return End.OPENED if is_over else None

    def _protected(self, found: set[str], *, is_over: bool) -> End | None:
        agreed = sum(each == CONFIRMED for each in self.verdicts.values())
        missing = self.electorate.majority - agreed
        if missing <= 0 and self.verdicts[0] == CONFIRMED:
            return End.OPENED
        if not is_over and missing <= len(self.silent) and self.verdicts[0] == CONFIRMED:
            return None
        others = found - {CONFIRMED, FAILED}
        return self._refused(others) if others else End.NO_MAJORITY

    def _refused(self, others: set[str]) -> End:
        if others == {OUTDATED} and self.attempts < ATTEMPTS_MAX:
            return End.OUTDATED
        return End.CONTESTED
