"""Tables of `weft mesh`, made from rows."""

from collections.abc import Iterable, Mapping, Sequence

from rich.tree import Tree

from weft.cli.output import streams
from weft.cli.output.fitted_table import FittedTable
from weft.cli.output.mesh_rows import (
    LinkRow,
    NodeRow,
    SubscriptionRow,
    TargetRow,
    WantedRow,
    WantingRow,
)
from weft.cli.output.message_text import printable
from weft.cli.output.units import duration, latency, short


def nodes(rows: Iterable[NodeRow]) -> FittedTable:
    """Return the table of the gateways of a mesh."""
    columns = ("gateway", "state", "address", "region", "load ", "patterns ", "links ", "room ")
    return streams.table(
        "gateways",
        columns,
        (
            (
                *(printable(row.name), state(row), printable(row.address), printable(row.region)),
                *(str(row.load), _patterns(row), f"{len(row.links):,}", f"{row.room:,}"),
            )
            for row in rows
        ),
        spare=("room ", "load ", "region", "patterns ", "links "),
    )


def state(row: NodeRow) -> str:
    """Return how a gateway is reached, in words."""
    if row.state == "reached":
        return f"{row.hops} links away, through {printable(row.through)}"
    if row.state == "lost":
        return f"lost for {duration(row.lost_s)}"
    if row.state in ("left", "leaving"):
        return row.state
    if row.is_draining:
        return "draining"
    return printable(row.state)


def links(title: str, rows: Iterable[LinkRow]) -> FittedTable:
    """Return the table of the links of one gateway."""
    columns = ("gateway", "address", "made", "state", "for ", "round trip ", "waiting ")
    return streams.table(
        title,
        columns,
        (
            (
                *(printable(row.name), printable(row.address)),
                *("dialled" if row.is_dialled else "accepted", printable(row.state)),
                *(duration(row.since_s), latency(row.rtt_ms / 1e3) if row.rtt_ms else ""),
                short(row.waiting_bytes, "B"),
            )
            for row in rows
        ),
        spare=("made", "address", "waiting "),
    )


def targets(rows: Iterable[TargetRow]) -> FittedTable:
    """Return the table of addresses that cannot be linked."""
    return streams.table(
        "not reached",
        ("address", "tried again", "why"),
        (
            (
                printable(row.address),
                "now" if row.is_dialling or not row.next_s else f"in {latency(row.next_s)}",
                printable(row.problem),
            )
            for row in rows
        ),
    )


def interest(rows: Iterable[WantedRow]) -> FittedTable:
    """Return the table of the gateways' interest sets."""
    return streams.table(
        "interest",
        ("gateway", "pattern", "group", "answers"),
        (
            (
                *(printable(row.gateway), printable(row.pattern), printable(row.group)),
                "no" if row.listen_only else "yes",
            )
            for row in rows
        ),
    )


def subscriptions(title: str, rows: Iterable[SubscriptionRow]) -> FittedTable:
    """Return the table of connections and their subscriptions."""
    return streams.table(
        title,
        ("connection ", "name", "pattern", "group", "policy", "reads"),
        (
            (
                *(str(row.connection), printable(row.name), printable(row.pattern)),
                *(printable(row.group), printable(row.policy)),
                "behind" if row.is_behind else "in time",
            )
            for row in rows
        ),
        spare=("policy",),
    )


def wanting(title: str, rows: Iterable[WantingRow]) -> FittedTable:
    """Return the table of gateways with matching subscriptions."""
    return streams.table(
        title,
        ("gateway", "pattern", "group", "links away "),
        (
            (
                *(printable(row.name), printable(row.pattern), printable(row.group)),
                str(row.hops) if row.hops else "no way",
            )
            for row in rows
        ),
    )


def tree(rows: Sequence[NodeRow]) -> Tree:
    """Return the paths from the queried gateway as a tree; unreachable gateways last."""
    own = next(row for row in rows if row.state == "here")
    made = {own.name: Tree(printable(own.name), guide_style="dim")}
    near = sorted((row for row in rows if row.hops), key=lambda row: row.hops)
    for row in near:
        # A gateway whose predecessor is not listed is a child of the root.
        made[row.name] = made.get(row.by, made[own.name]).add(printable(row.name))
    for row in rows:
        if row.state in ("lost", "leaving", "left"):
            made[own.name].add(f"{printable(row.name)} ({state(row)})")
    return made[own.name]


def counts(values: Mapping[str, int | Mapping[str, int]]) -> str:
    """Return the counters that are not 0, on one line."""
    shown = [
        f"{count:,} {name.replace('_', ' ')}"
        for name, count in values.items()
        if isinstance(count, int) and count
    ]
    refused = values.get("refused", {})
    if isinstance(refused, Mapping):
        shown += [f"{count:,} refused as {printable(name)}" for name, count in refused.items()]
    return f"messages of others: {', '.join(shown) or 'none yet'}"


def not_linked(values: Mapping[str, int]) -> str:
    """Return the counts of refused links, on one line."""
    shown = [f"{count:,} by {printable(name)}" for name, count in values.items()]
    return f"gateways not linked with: {', '.join(shown)}; the log says which and why"


def _patterns(row: NodeRow) -> str:
    if not row.is_current:
        return f"{row.patterns:,}, not all known"
    return f"{row.patterns:,} coarse" if row.is_coarse else f"{row.patterns:,}"
