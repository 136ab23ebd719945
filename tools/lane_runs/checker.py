"""Judges histories: nothing lost in silence, nothing twice, nothing out of order.

The order is that of one connection of a publisher, whatever the subjects. A publisher that loses
its connection may lose what it said at last, and nobody can know; so what must come is whatever
lies between two messages of the same connection, and what was said since it was last connected.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tools.lane_runs.history import Episode, Gap, Heard, Publisher

SHOWN = 5


@dataclass
class Verdict:
    """What was found."""

    delivered: int = 0
    by_lane: int = 0
    gaps: int = 0
    # Owed, and missing where a gap was announced.
    announced: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    misordered: list[str] = field(default_factory=list)
    # Between two connections of a publisher nothing is promised; counted to be known.
    overtaken: int = 0

    @property
    def is_right(self) -> bool:
        """Say if nothing is wrong."""
        return not (self.lost or self.doubled or self.misordered)

    def faults(self) -> list[str]:
        """Everything that is wrong, for people; the first few of each kind."""
        kinds = {
            "lost silently": self.lost,
            "doubled": self.doubled,
            "misordered": self.misordered,
        }
        return [f"{kind}: {each}" for kind, found in kinds.items() for each in found[:SHOWN]]


def judge(publishers: Iterable[Publisher], episodes: Iterable[Episode]) -> Verdict:
    """Hold what was heard against what was published."""
    verdict = Verdict()
    known = {each.number: each for each in publishers}
    for episode in episodes:
        heard = [each for each in episode.events if isinstance(each, Heard)]
        verdict.delivered += len(heard)
        verdict.by_lane += sum(each.is_by_lane for each in heard)
        verdict.gaps += len(episode.events) - len(heard)
        for publisher in known.values():
            _Stream(episode, publisher, verdict).judge()
    return verdict


class _Stream:
    """What one subscription heard of one publisher."""

    def __init__(self, episode: Episode, publisher: Publisher, verdict: Verdict) -> None:
        self._episode = episode
        self._publisher = publisher
        self._verdict = verdict

    def judge(self) -> None:
        """Go through what was heard, in the order in which it was."""
        seen: set[int] = set()
        last: Heard | None = None
        is_gap = False
        for event in self._episode.events:
            if isinstance(event, Gap):
                is_gap = True
            elif event.publisher == self._publisher.number:
                if event.number in seen:
                    self._verdict.doubled.append(self._named(event.number))
                    continue
                seen.add(event.number)
                self._follow(last, event, seen, is_gap)
                last = event
                is_gap = False
        if self._episode.is_whole:
            self._finish(last, seen, is_gap)

    def _follow(self, last: Heard | None, event: Heard, seen: set[int], is_gap: bool) -> None:
        """One message came after another."""
        if last is None:
            self._miss(self._steady(0, event.number), is_gap)
        elif last.incarnation != event.incarnation:
            self._verdict.overtaken += event.number < last.number
            # What was held back of an earlier connection may come after some of the next one.
            between = self._steady(last.number + 1, event.number)
            self._miss([number for number in between if number not in seen], is_gap)
        elif event.number < last.number:
            # That it comes late is told; that it lacked before was told when it was passed.
            self._verdict.misordered.append(f"{self._named(event.number)} after {last.number}")
        else:
            self._skip(range(last.number + 1, event.number), is_gap)

    def _skip(self, numbers: Iterable[int], is_gap: bool) -> None:
        """Judge a hole within one connection, whether or not its messages were owed.

        A subscription may hear what was published before it was confirmed, but with no holes.
        """
        published = self._publisher.published
        wanted = [each for each in numbers if published[each].subject in self._episode.subjects]
        owed = [each for each in wanted if self._episode.is_owed(published[each])]
        self._miss(owed, is_gap)
        if not is_gap:
            others = [each for each in wanted if each not in owed]
            self._verdict.lost += [f"{self._named(each)}, a hole" for each in others]

    def _finish(self, last: Heard | None, seen: set[int], is_gap: bool) -> None:
        """Nothing more came."""
        begin = 0 if last is None else last.number + 1
        rest = self._steady(begin, len(self._publisher.published))
        self._miss([number for number in rest if number not in seen], is_gap)

    def _steady(self, begin: int, end: int) -> list[int]:
        """Those that its publisher cannot have lost with a connection."""
        published, since = self._publisher.published, self._publisher.steady_from
        return [number for number in range(begin, end) if published[number].time > since]

    def _miss(self, numbers: Iterable[int], is_gap: bool) -> None:
        published = self._publisher.published
        for number in numbers:
            if self._episode.is_owed(published[number]):
                if is_gap:
                    self._verdict.announced += 1
                else:
                    self._verdict.lost.append(self._named(number))

    def _named(self, number: int) -> str:
        subject = self._publisher.published[number].subject
        return f"p{self._publisher.number} {number} to {subject} at {self._episode.name}"
