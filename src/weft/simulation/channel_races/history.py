"""History of a race for channel names, and its verdict."""

from typing import NamedTuple

import msgspec

from weft.errors import WeftError

LEAK = "heard with another password"
TWO_OWNERS = "two owners in one epoch"
TWO_CERTAIN = "two certain at once"
DISAGREED = "not agreed in the end"
RACE_KINDS = (LEAK, TWO_OWNERS, TWO_CERTAIN, DISAGREED)

_SHOWN = 5


class Opened(NamedTuple):
    """Channel that was opened."""

    name: bytes
    epoch: int
    channel: bytes
    is_protected: bool


class RaceHistory:
    """Events recorded during a run."""

    def __init__(self) -> None:
        self.members = 0
        self.attempts = 0
        self.refusals: dict[str, int] = {}
        self.opened: list[Opened] = []
        self.deliveries = 0
        self.lost = 0
        self.leaks: list[str] = []
        self.certain: list[str] = []
        self.disagreed: list[str] = []

    def refuse(self, error: WeftError) -> None:
        """Count a refused open request."""
        name = type(error).__name__
        self.refusals[name] = self.refusals.get(name, 0) + 1


class RaceOutcome(msgspec.Struct):
    """Result of a run: violations counted by kind, with examples of each."""

    seed: int
    attempts: int = 0
    opened: int = 0
    lost: int = 0
    deliveries: int = 0
    refusals: dict[str, int] = {}
    violations: dict[str, int] = {}
    told: list[str] = []


def judge(seed: int, race: RaceHistory) -> RaceOutcome:
    """Return the result of a run."""
    owners: dict[tuple[bytes, int], set[bytes]] = {}
    for opened in race.opened:
        if opened.is_protected:
            owners.setdefault((opened.name, opened.epoch), set()).add(opened.channel)
    doubled = [
        f"{name.decode()} in epoch {epoch}: {len(found)} channels"
        for (name, epoch), found in owners.items()
        if len(found) > 1
    ]
    found = dict(zip(RACE_KINDS, (race.leaks, doubled, race.certain, race.disagreed), strict=True))
    return RaceOutcome(
        seed,
        race.attempts,
        len(race.opened),
        race.lost,
        race.deliveries,
        race.refusals,
        {kind: len(texts) for kind, texts in found.items() if texts},
        [f"{kind}: {text}" for kind, texts in found.items() for text in texts[:_SHOWN]],
    )


class RaceTotals(msgspec.Struct):
    """Totals of many runs."""

    runs: int = 0
    attempts: int = 0
    opened: int = 0
    lost: int = 0
    deliveries: int = 0
    refusals: dict[str, int] = {}
    violations: dict[str, int] = {}
    failed: list[int] = []

    def add(self, outcome: RaceOutcome) -> None:
        """Add one more run."""
        self.runs += 1
        self.attempts += outcome.attempts
        self.opened += outcome.opened
        self.lost += outcome.lost
        self.deliveries += outcome.deliveries
        for mine, others in (
            (self.refusals, outcome.refusals),
            (self.violations, outcome.violations),
        ):
            for name, count in others.items():
                mine[name] = mine.get(name, 0) + count
        if outcome.violations:
            self.failed.append(outcome.seed)
