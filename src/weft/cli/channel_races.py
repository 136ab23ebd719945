"""`weft simulate --channels`: several gateways open channels of the same names concurrently."""

from collections.abc import Sequence

import msgspec

from weft.cli import errors
from weft.cli.commit import commit
from weft.cli.output import streams
from weft.cli.output.message_text import to_json
from weft.cli.output.progress import Bar
from weft.simulation.channel_races.history import RACE_KINDS, RaceOutcome, RaceTotals
from weft.simulation.channel_races.run import CRASHED, Race, run_races

_REFUSALS = {
    "ChannelExists": "refused: there is one",
    "ChannelContested": "refused: contested",
    "NoMajority": "refused: no majority",
}


def race(seeds: Sequence[int], jobs: int, *, is_traced: bool, is_json: bool) -> int:
    """Run the simulations and print their results; return the exit status."""
    totals = RaceTotals()
    failed: list[RaceOutcome] = []
    if is_traced:
        trace: list[str] = []
        outcomes = iter([Race(seeds[0], trace).run()])
        for line in trace:
            streams.tell(line)
    else:
        outcomes = run_races(seeds, min(jobs, len(seeds)))
    with Bar("simulating", len(seeds)) as bar:
        for outcome in outcomes:
            totals.add(outcome)
            if outcome.violations:
                failed.append(outcome)
            bar.reached(totals.runs, f"{totals.runs:,} runs, {len(failed)} failed")
    if is_json:
        facts = msgspec.to_builtins(totals)
        facts |= {"commit": commit(), "failures": [msgspec.to_builtins(each) for each in failed]}
        streams.json_result(to_json(facts))
    else:
        _show(totals, failed)
    return errors.FAILED if failed else 0


def _show(totals: RaceTotals, failed: list[RaceOutcome]) -> None:
    refused = [(text, f"{totals.refusals.get(name, 0):,}") for name, text in _REFUSALS.items()]
    rows = [
        ("runs", f"{totals.runs:,}"),
        ("openings", f"{totals.attempts:,}"),
        ("opened", f"{totals.opened:,}"),
        *refused,
        ("members notified of a lost channel", f"{totals.lost:,}"),
        ("deliveries", f"{totals.deliveries:,}"),
        *((kind, f"{totals.violations.get(kind, 0):,}") for kind in (*RACE_KINDS, CRASHED)),
        ("failed runs", f"{len(totals.failed):,}"),
    ]
    streams.show(streams.table("", ("", " "), rows))
    where = commit()
    for outcome in sorted(failed, key=lambda each: each.seed):
        streams.result(f"seed={outcome.seed} commit={where} channels")
        for text in outcome.told:
            streams.result(f"  {text}")
