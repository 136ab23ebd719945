"""What was published, and what each subscription was told, in order."""

from dataclasses import dataclass, field
from typing import NamedTuple

NEVER = float("inf")
# Lanes number what goes by them from here on.
BY_LANE = 1 << 63


class Published(NamedTuple):
    """One message: when, and to which subject; its number is its place."""

    time: float
    subject: str


class Heard(NamedTuple):
    """A message that came."""

    publisher: int
    number: int
    # Which connection of its publisher it came from: gateway and number.
    incarnation: tuple[int, int]
    is_by_lane: bool = False


@dataclass(frozen=True, slots=True)
class Gap:
    """It was announced that something may not have come."""

    reason: str
    count: int


@dataclass
class Publisher:
    """What one client published."""

    number: int
    published: list[Published] = field(default_factory=list)
    # What is published from here on is owed: since then it is connected, or was until it closed.
    steady_from: float = NEVER


@dataclass
class Episode:
    """One subscription: what it hears, when it was in force, and what came of it."""

    name: str
    subjects: frozenset[str]
    events: list[Heard | Gap] = field(default_factory=list)
    # From each confirmation until the connection was lost, or it was taken back.
    spans: list[tuple[float, float]] = field(default_factory=list)
    # It was there to the end, so that everything should have come.
    is_whole: bool = False

    def begin(self, now: float) -> None:
        """It is confirmed."""
        if not self.spans or self.spans[-1][1] != NEVER:
            self.spans.append((now, NEVER))

    def end(self, now: float) -> None:
        """It is in force no more."""
        if self.spans and self.spans[-1][1] == NEVER:
            self.spans[-1] = (self.spans[-1][0], now)

    def is_owed(self, message: Published) -> bool:
        """Say if a message was published while it was in force."""
        return message.subject in self.subjects and any(
            begin <= message.time < end for begin, end in self.spans
        )
