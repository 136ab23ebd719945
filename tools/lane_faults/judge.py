"""What all receivers heard, compared with what all publishers said.

Between two messages of one publisher and one subject nothing may be missing, unless a loss was
announced there, or the publisher's own connection was lost when it had said what is missing.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from typing import NamedTuple

from tools.lane_faults.notes import Heard, Missed, Said, Session

DOUBLED = "doubled"
MISORDERED = "misordered"
LOST = "silently lost"
UNTRUE = "more lost than announced"

# Counts by subject.
Counts = dict[str, int]


class Break(NamedTuple):
    """A publisher lost its gateway: what it had confirmed by then, and what it had said."""

    confirmed: Counts
    said: Counts

    def excuses(self, subject: str, first: int, last: int) -> bool:
        """Say if this may be why some messages did not come."""
        return self.confirmed.get(subject, 0) < first and last <= self.said.get(subject, 0)


class Speech:
    """All that one publisher said, by subject when each message was, and where it was cut off."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.times_ns: dict[str, list[int]] = defaultdict(list)
        self.breaks: list[Break] = []

    @property
    def counts(self) -> Counts:
        """How much was said to each subject."""
        return {subject: len(times_ns) for subject, times_ns in self.times_ns.items()}


class Violation(NamedTuple):
    """Something that must not be."""

    kind: str
    receiver: str
    text: str


class Verdict:
    """How it went."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self.said = 0
        self.by_lanes = 0
        self.relayed = 0
        # Announcements of losses by reason, and the messages that they told of.
        self.announced: Counter[str] = Counter()
        self.told = 0
        # What is missing where a loss was announced, or where a publisher lost its gateway.
        self.missing_announced = 0
        self.missing_at_breaks = 0

    def kinds(self) -> Counter[str]:
        """How many violations there are of each kind."""
        return Counter(each.kind for each in self.violations)


def judged(speeches: dict[int, Speech], sessions: list[Session]) -> Verdict:
    """Compare."""
    verdict = Verdict()
    verdict.said = sum(sum(speech.counts.values()) for speech in speeches.values())
    seen: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for session in sessions:
        _Judging(speeches, session, seen[session.receiver], verdict).run()
    return verdict


class _Judging:
    """One session."""

    def __init__(
        self,
        speeches: dict[int, Speech],
        session: Session,
        seen: set[tuple[int, int]],
        verdict: Verdict,
    ) -> None:
        self._speeches = speeches
        self._session = session
        self._seen = seen
        self._verdict = verdict
        self._at = 0
        # By publisher and its connection: what it was told last.
        self._last: dict[tuple[int, str], int] = {}
        # By publisher and subject: the count that must come next, and after which event.
        self._next: dict[tuple[int, str], tuple[int, int]] = {}
        # The publishers and subjects of which anything was heard.
        self._begun: set[tuple[int, str]] = set()
        # Where losses were announced.
        self._gaps: list[int] = []
        self._told = 0
        self._is_told_exactly = True
        self._missing = 0

    def run(self) -> None:
        for number, speech in self._speeches.items():
            for subject in self._session.subjects:
                owed = bisect_right(speech.times_ns[subject], self._session.ready_ns)
                self._next[(number, subject)] = (owed + 1, -1)
        for at, event in enumerate(self._session.events):
            self._at = at
            if isinstance(event, Heard):
                self._hear(event)
            else:
                self._miss(event)
        self._at = len(self._session.events)
        if self._session.is_complete:
            for (number, subject), (wanted, _) in self._next.items():
                said = len(self._speeches[number].times_ns[subject])
                self._check(number, subject, wanted, said + 1)
        if self._is_told_exactly and self._missing > self._told:
            self._violate(UNTRUE, f"{self._missing} are missing, {self._told} were announced")

    def _hear(self, heard: Heard) -> None:
        said = heard.said
        if heard.is_direct:
            self._verdict.by_lanes += 1
        else:
            self._verdict.relayed += 1
        mark = (said.publisher, said.number)
        if mark in self._seen:
            self._violate(DOUBLED, f"{said}")
            return
        self._seen.add(mark)
        stream = (said.publisher, heard.connection)
        last = self._last.get(stream, 0)
        if said.number < last:
            self._violate(MISORDERED, f"{said} after number {last}")
        self._last[stream] = max(last, said.number)
        self._count(said)

    def _count(self, said: Said) -> None:
        key = (said.publisher, said.subject)
        wanted, _ = self._next[key]
        # What was said before it was owed may come as well, but then with no holes.
        if said.place > wanted:
            self._check(said.publisher, said.subject, wanted, said.place)
        following = said.place + 1
        self._next[key] = (max(wanted, following) if key in self._begun else following, self._at)
        self._begun.add(key)

    def _check(self, number: int, subject: str, wanted: int, count: int) -> None:
        """Between these two nothing may be missing."""
        missing = count - wanted
        if missing <= 0:
            return
        _, since = self._next[(number, subject)]
        speech = self._speeches[number]
        if bisect_right(self._gaps, since) < len(self._gaps):
            self._missing += missing
            self._verdict.missing_announced += missing
        elif any(each.excuses(subject, wanted, count - 1) for each in speech.breaks):
            self._verdict.missing_at_breaks += missing
        else:
            text = f"{wanted} … {count - 1} of {number} to {subject}"
            self._violate(LOST, f"{text}, after event {since}, before {self._at}")

    def _miss(self, missed: Missed) -> None:
        self._gaps.append(self._at)
        self._verdict.announced[missed.reason] += 1
        self._verdict.told += missed.messages
        self._told += missed.messages
        if not missed.messages:
            self._is_told_exactly = False
        if missed.reason == "reconnected":
            # It is another connection: what is under way to the last one may come late.
            self._last.clear()

    def _violate(self, kind: str, text: str) -> None:
        self._verdict.violations.append(Violation(kind, self._session.receiver, text))
