"""What a run came to: lines for people, the same as JSON, and whether all is well."""

from typing import Any

from tools.lane_faults.judge import DOUBLED, LOST, MISORDERED, UNTRUE
from tools.lane_faults.run import Options, Outcome

# So many violations are shown.
SHOWN_MAX = 10
_KINDS = (DOUBLED, MISORDERED, LOST, UNTRUE)


class Report:
    """The verdict on a run, and what else is worth knowing."""

    def __init__(self, outcome: Outcome, options: Options, place: str) -> None:
        self._outcome = outcome
        self._options = options
        self._place = place

    @property
    def is_right(self) -> bool:
        """Say if nothing was violated, and routes went direct as often as they were to."""
        outcome = self._outcome
        is_enough = outcome.tally.promotions >= self._options.promotions
        return is_enough and not outcome.verdict.violations and not outcome.problems

    def figures(self) -> dict[str, Any]:
        """Everything by name."""
        outcome = self._outcome
        verdict, tally = outcome.verdict, outcome.tally
        kinds = verdict.kinds()
        return {
            "seed": self._options.seed,
            "place": self._place,
            "seconds": round(outcome.seconds, 1),
            "faults": dict(outcome.faults),
            "left_out": outcome.left_out,
            "promotions": tally.promotions,
            "demotions": dict(tally.demotions.most_common()),
            "declined": dict(tally.declined.most_common()),
            "reconnects": tally.reconnects,
            "published": verdict.said,
            "delivered_by_lanes": verdict.by_lanes,
            "delivered_by_gateway": verdict.relayed,
            **{kind.replace(" ", "_"): kinds[kind] for kind in _KINDS},
            "announcements": dict(verdict.announced),
            "announced": verdict.told,
            "missing_announced": verdict.missing_announced,
            "missing_at_breaks": verdict.missing_at_breaks,
            "told_to_publishers": tally.gaps,
            "problems": outcome.problems,
        }

    def lines(self) -> list[str]:
        """Everything for people."""
        outcome, figures = self._outcome, self.figures()
        lines = [f"{name.replace('_', ' ')}: {_shown(value)}" for name, value in figures.items()]
        lines += [f"  {each}" for each in outcome.verdict.violations[:SHOWN_MAX]]
        return [*lines, "all is well" if self.is_right else "NOT all is well"]


def _shown(value: object) -> str:
    if isinstance(value, dict):
        rows = [
            f"\n    {each:>9,}  {name}" if isinstance(each, int) else f"\n    {name}: {each}"
            for name, each in value.items()
        ]
        return "".join(rows) or "none"
    if isinstance(value, list):
        return "".join(f"\n    {each}" for each in value) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)
