"""`weft simulate`: the mesh on a simulated network, with injected faults."""

import os
from typing import Any

import click
import msgspec

from weft.cli import errors
from weft.cli.channel_races import race
from weft.cli.commit import commit
from weft.cli.options.help_text import examples
from weft.cli.output import streams
from weft.cli.output.message_text import to_json
from weft.cli.output.progress import Bar
from weft.cli.output.units import latency, short
from weft.simulation.checker import KINDS
from weft.simulation.faults import FAULTS
from weft.simulation.runs import CRASHED, Totals, run_all
from weft.simulation.scale import SIZES, Size, measure
from weft.simulation.scenario import RunOutcome, Scenario, ScenarioOptions

# Most violations that are printed for a failed run; its trace has all.
_SHOWN_VIOLATIONS = 3


class SimulateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the command."""

    seeds: int
    seed: int | None
    nodes: int
    faults: tuple[str, ...]
    jobs: int
    is_traced: bool
    is_scale: bool
    is_channels: bool
    is_json: bool


def _faults(_: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Return the given kinds of faults."""
    if value is None:
        return tuple(FAULTS)
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    unknown = [name for name in names if name not in FAULTS and name != "none"]
    if unknown:
        raise click.BadParameter(
            f"{unknown[0]!r} is none of {', '.join(FAULTS)}, none", param=parameter
        )
    return () if names == ("none",) else names


def _nodes(_: click.Context, parameter: click.Parameter, value: int) -> int:
    """Return the number of gateways; 0: chosen by each seed."""
    if value < 0 or value == 1:
        raise click.BadParameter(f"{value} is not in 2 … 1000", param=parameter)
    return value


@click.command(
    epilog=examples(
        "weft simulate --seeds 1000",
        "weft simulate --seed 17 --trace",
        "weft simulate --faults flap,partition --nodes 5",
        "weft simulate --channels --seeds 1000",
        "weft simulate --scale",
    )
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    metavar="N",
    help="Number of runs, starting at seed 0.",
)
@click.option("--seed", type=int, metavar="S", help="Run this seed only.")
@click.option(
    "--nodes",
    type=click.IntRange(max=1000),
    default=0,
    metavar="N",
    callback=_nodes,
    help="Number of gateways, 2 to 1000 (default: chosen by each seed).",
)
@click.option(
    "--faults",
    callback=_faults,
    metavar="KINDS",
    help=f"Faults to inject, of {', '.join(FAULTS)}, separated by commas, or none.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=os.cpu_count() or 1,
    show_default="one for each processor",
    metavar="N",
    help="Number of concurrent runs.",
)
@click.option("--trace", "is_traced", is_flag=True, help="Print all events, with --seed.")
@click.option("--scale", "is_scale", is_flag=True, help="Measure meshes of 10, 100, 1000.")
@click.option(
    "--channels", "is_channels", is_flag=True, help="Open channels of the same names concurrently."
)
@click.option("--json", "is_json", is_flag=True, help="Print JSON.")
def simulate(**given: Any) -> int:
    """Inject faults into simulated meshes, and check guarantees.

    Each run is a mesh of real gateways on a simulated clock and network: links break, networks
    part, gateways hang or are killed, clocks are wrong. Every message is accounted for. The same
    seed gives the same run.
    """
    options = SimulateOptions(**given)
    if options.is_scale:
        return _scale(options)
    if options.is_channels and (options.nodes or options.faults != tuple(FAULTS)):
        raise click.UsageError("--channels has its own gateways and faults: omit both options")
    if options.is_traced and options.seed is None:
        raise click.UsageError("--trace shows one run: it needs --seed")
    if options.is_channels:
        seeds = range(options.seeds) if options.seed is None else [options.seed]
        return race(seeds, options.jobs, is_traced=options.is_traced, is_json=options.is_json)
    if options.seed is not None:
        return _run_one(options.seed, options)
    return _run_many(options)


def _run_one(seed: int, options: SimulateOptions) -> int:
    trace: list[str] = []
    scenario = Scenario(seed, _manner(options), trace if options.is_traced else None)
    outcome = scenario.run()
    for line in trace:
        streams.tell(line)
    totals = Totals()
    totals.add(outcome)
    _show(totals, [outcome], options)
    return errors.FAILED if outcome.verdict.violations else 0


def _run_many(options: SimulateOptions) -> int:
    totals = Totals()
    failed: list[RunOutcome] = []
    with Bar("simulating", options.seeds) as bar:
        for outcome in run_all(range(options.seeds), _manner(options), options.jobs):
            totals.add(outcome)
            if outcome.verdict.violations:
                failed.append(outcome)
            bar.reached(totals.runs, f"{totals.runs:,} runs, {len(failed)} failed")
    _show(totals, failed, options)
    return errors.FAILED if failed else 0


def _manner(options: SimulateOptions) -> ScenarioOptions:
    return ScenarioOptions(options.nodes, options.faults)


def _show(totals: Totals, outcomes: list[RunOutcome], options: SimulateOptions) -> None:
    where = commit()
    failed = [each for each in outcomes if each.verdict.violations]
    if options.is_json:
        facts = msgspec.to_builtins(totals)
        del facts["converged_s"]
        facts["announced_percent"] = totals.announced_percent
        for name, share in _SHARES:
            facts[f"converged_{name}_s"] = totals.converged_at(share)
        facts["commit"] = where
        facts["failures"] = [msgspec.to_builtins(each) for each in failed]
        streams.json_result(to_json(facts))
        return
    streams.show(streams.table("", ("", " "), _rows(totals)))
    for outcome in sorted(failed, key=lambda each: each.seed):
        streams.result(_replay(outcome, options, where))
        for violation in outcome.verdict.violations[:_SHOWN_VIOLATIONS]:
            streams.result(f"  {violation.kind}: {violation.text}")


_SHARES = (("p50", 0.5), ("p99", 0.99), ("max", 1.0))


def _rows(totals: Totals) -> list[tuple[str, str]]:
    times = " ".join(f"{name} {latency(totals.converged_at(share))}" for name, share in _SHARES)
    return [
        ("runs", f"{totals.runs:,}"),
        ("virtual time", f"{totals.virtual_s:,.0f} s"),
        ("messages published", f"{totals.published:,}"),
        ("deliveries", f"{totals.heard:,}"),
        ("link sends", f"{totals.passages:,}"),
        ("requests, answered, refused", f"{totals.asked:,} {totals.answered:,} {totals.refused:,}"),
        ("announced as lost", f"{totals.announced:,} ({totals.announced_percent:.4f} %)"),
        ("left with a member of a group", f"{totals.left_with:,}"),
        ("together again after", times),
        *((kind, f"{totals.violations.get(kind, 0):,}") for kind in (*KINDS, CRASHED)),
        ("failed runs", f"{len(totals.failed):,}"),
    ]


def _replay(outcome: RunOutcome, options: SimulateOptions, where: str) -> str:
    """Return the options that reproduce a run exactly."""
    nodes = f" nodes={options.nodes}" if options.nodes else ""
    is_all = options.faults == tuple(FAULTS)
    faults = "" if is_all else f" faults={','.join(options.faults) or 'none'}"
    return f"seed={outcome.seed} commit={where}{nodes}{faults}"


# Scale.


def _scale(options: SimulateOptions) -> int:
    sizes = [options.nodes] if options.nodes else SIZES
    measured: list[Size] = []
    for nodes in sizes:
        with Bar(f"{nodes:,} gateways", None) as bar:
            measured.append(measure(nodes, options.seed or 0, bar.reached))
    if options.is_json:
        streams.json_result(to_json([msgspec.to_builtins(each) for each in measured]))
        return 0
    columns = (
        *("gateways ", "links ", "diameter ", "mean path ", "copies ", "control ", "start "),
        *("after a kill ", "memory ", "took "),
    )
    streams.show(streams.table("", columns, [_size_row(each) for each in measured]))
    return 0


def _size_row(size: Size) -> tuple[str, ...]:
    return (
        *(f"{size.nodes:,}", f"{size.mean_links:.1f}", f"{size.diameter}"),
        *(f"{size.mean_path:.2f}", f"{size.copies_per_link:.2f}"),
        *(f"{short(size.control_bytes_per_s, 'B')}/s", f"{size.start_s:.1f} s"),
        *(f"{size.kill_s:.1f} s", short(size.memory_bytes, "B"), f"{size.took_s:.0f} s"),
    )
