"""What a run came to: a table for people, the same as JSON, and whether all is well."""

from collections import Counter
from typing import Any

from tools.chaos.recovery import Times, recovery
from tools.chaos.run import Options, Outcome

from weft.simulation.checker import (
    DOUBLED,
    GROUP_DOUBLED,
    GROUP_LOST,
    LOST,
    MISORDERED,
    UNANSWERED,
    Verdict,
    check,
)
from weft.simulation.history import GapRecord

# Of each kind of violation so many are shown.
SHOWN_MAX = 5


class Report:
    """The verdict on a run, and what else is worth knowing."""

    def __init__(self, outcome: Outcome, options: Options, place: str) -> None:
        self._options = options
        self._place = place
        self._outcome = outcome
        self._verdict: Verdict = check(outcome.history)
        self._recovery = recovery(outcome.crowd.book, outcome.happened, options.gateways)
        self._kinds = Counter(each.kind for each in self._verdict.violations)
        # By how many messages they are of; 0: nobody knows.
        self._gaps = Counter(
            event.count
            for session in outcome.history.sessions
            for event in session.events
            if isinstance(event, GapRecord)
        )
        self._faults = Counter(each.fault.kind for each in outcome.happened)

    @property
    def is_right(self) -> bool:
        """Say if nothing was violated."""
        return not (self._verdict.violations or self._outcome.problems)

    def figures(self) -> dict[str, Any]:
        """Everything by name."""
        verdict, book = self._verdict, self._outcome.crowd.book
        return {
            "seed": self._options.seed,
            "place": self._place,
            "seconds": self._options.seconds,
            "gateways": self._options.gateways,
            "max_links": self._options.max_links,
            "sent": verdict.published,
            "unconfirmed": book.unconfirmed,
            "delivered": verdict.heard,
            "owed": verdict.owed,
            "announced_lost": verdict.announced,
            "gaps": verdict.gaps,
            "gaps_unknown": self._gaps[0],
            "gaps_counted": sum(self._gaps.values()) - self._gaps[0],
            "silently_lost": self._kinds[LOST],
            "doubled": self._kinds[DOUBLED],
            "misordered": self._kinds[MISORDERED],
            "group_doubled": self._kinds[GROUP_DOUBLED],
            "group_lost": self._kinds[GROUP_LOST],
            "left_with": verdict.left_with,
            "requests": verdict.asked,
            "answered": verdict.answered,
            "refused": verdict.refused,
            "unanswered": self._kinds[UNANSWERED],
            "converged_s": verdict.converged_ns / 1e9,
            "recovery": self._recovery._asdict(),
            "faults": dict(self._faults),
            "ends": dict(book.ends),
            "violations": dict(self._kinds),
            "problems": self._outcome.problems,
        }

    def lines(self) -> list[str]:
        """The same as a table."""
        said = self.figures()
        share = 100 * said["announced_lost"] / max(1, said["owed"])
        faults = ", ".join(f"{count} × {kind}" for kind, count in self._faults.items())
        groups = (
            f"{said['group_doubled']:,} doubled, {said['group_lost']:,} silently lost,"
            f" {said['left_with']:,} gone with a member"
        )
        requests = (
            f"{said['requests']:,}: {said['answered']:,} answered,"
            f" {said['refused']:,} refused, {said['unanswered']:,} neither"
        )
        rows = [
            ("sent", f"{said['sent']:,} ({said['unconfirmed']:,} may not have entered)"),
            ("delivered", f"{said['delivered']:,}"),
            ("owed", f"{said['owed']:,}"),
            ("announced lost", f"{said['announced_lost']:,} ({share:.3f} % of what is owed)"),
            ("gaps", f"{said['gaps_unknown']:,} of unknown size, {said['gaps_counted']:,} counted"),
            ("silently lost", f"{said['silently_lost']:,}"),
            ("doubled", f"{said['doubled']:,}"),
            ("misordered", f"{said['misordered']:,}"),
            ("group", groups),
            ("requests", requests),
            ("faults", f"{sum(self._faults.values())}: {faults}"),
            ("recovery", _times(self._recovery)),
            ("all reach all", f"{said['converged_s']:.2f} s after the last fault"),
        ]
        width = max(len(name) for name, _ in rows)
        return [f"{name:<{width}}  {text}" for name, text in rows] + self._faulty()

    def _faulty(self) -> list[str]:
        lines = [f"PROBLEM: {problem}" for problem in self._outcome.problems]
        for kind, count in self._kinds.items():
            lines.append(f"VIOLATION: {count:,} × {kind}")
            found = [each.text for each in self._verdict.violations if each.kind == kind]
            lines += [f"  {text}" for text in found[:SHOWN_MAX]]
        return lines


def _times(times: Times) -> str:
    return (
        f"p50 {times.p50_s:.3f} s, p99 {times.p99_s:.3f} s, max {times.max_s:.3f} s"
        f" of {times.pairs:,}" + (f", {times.never:,} never" if times.never else "")
    )
