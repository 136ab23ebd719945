"""`weft top`: current traffic of a service, refreshed periodically."""

import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import click
import msgspec
from rich.console import Group, RenderableType
from rich.live import Live

from weft import Connection
from weft.cli.options.help_text import examples
from weft.cli.options.target import CommandTarget, target_options
from weft.cli.options.types import SECONDS_MAX, FiniteRange
from weft.cli.output import status_tables, streams
from weft.cli.output.fitted_table import Cropped
from weft.cli.output.message_text import clock, to_json
from weft.cli.output.units import rate, short
from weft.cli.query import (
    ALL,
    Answer,
    ConnectionRow,
    FlowRow,
    ServiceTotals,
    SubjectRow,
    ask,
    ask_others,
    check_service,
    read,
)
from weft.errors import ConnectionLost

# At 80 columns; per table: an empty line, the title, the column names, a note.
_HEADLINE_LINES = 2
_LINES_BESIDE_ROWS = 4


@dataclass(frozen=True, slots=True)
class TopOptions:
    """Options of the command."""

    once: bool
    interval: float
    limit: int


@dataclass(frozen=True, slots=True)
class Picture:
    """Traffic of a service at one time."""

    time_ns: int
    status: Answer
    subjects: list[SubjectRow]
    connections: list[ConnectionRow]
    slow_readers: list[ConnectionRow]


@click.command(
    epilog=examples(
        "weft top",
        "weft top --once --json",
    )
)
@click.option("--once", is_flag=True, help="Print once and exit.")
@click.option(
    "--interval",
    type=FiniteRange(min=0.1, max=SECONDS_MAX),
    default=1.0,
    show_default=True,
    metavar="S",
    help="Seconds between refreshes.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Most rows of each table.",
)
@target_options
def top(target: CommandTarget, **options: Any) -> None:
    """Show the current traffic of a service.

    The busiest subjects and connections, and slow consumers.
    """
    manner = TopOptions(**options)
    check_service(target)
    # A lost connection is displayed in the picture, not printed.
    with target.open(on_status=lambda _: None) as connection:
        if manner.once:
            _print(target, look(connection, manner.limit))
        elif target.is_json or not streams.is_terminal(sys.stdout):
            while True:
                _print(target, look(connection, manner.limit))
                time.sleep(manner.interval)
        else:
            _draw(target, connection, manner)


def look(connection: Connection, limit: int) -> Picture:
    """Query the gateway, and leave out the traffic of this command."""
    flows = read(ask(connection, "flows", ALL)["flows"], list[FlowRow])
    flows = [flow for flow in flows if not flow.subject.startswith("_WEFT")]
    others = ask_others(connection)
    there = read(others["connections"], list[ConnectionRow])
    status = ask(connection, "status")
    status["connections"] -= 1
    # An incomplete list has no sum: then keep the service's own, where this command hardly counts.
    if not others["more"]:
        status["message_rate"] = sum(row.message_rate for row in there)
        status["byte_rate"] = sum(row.byte_rate for row in there)
    return Picture(
        time_ns=time.time_ns(),
        status=status,
        subjects=by_subject(flows)[:limit],
        connections=sorted(there, key=lambda row: row.message_rate, reverse=True)[:limit],
        slow_readers=sorted(
            (row for row in there if row.is_behind), key=lambda row: row.owed_bytes, reverse=True
        )[:limit],
    )


def by_subject(flows: Iterable[FlowRow]) -> list[SubjectRow]:
    """Return the sums of each subject's flows, the busiest first."""
    totals: dict[str, SubjectRow] = {}
    for flow in flows:
        known = totals.get(flow.subject, SubjectRow(subject=flow.subject))
        totals[flow.subject] = SubjectRow(
            subject=flow.subject,
            messages=known.messages + flow.messages,
            bytes=known.bytes + flow.bytes,
            message_rate=known.message_rate + flow.message_rate,
            byte_rate=known.byte_rate + flow.byte_rate,
        )
    return sorted(totals.values(), key=lambda flow: flow.message_rate, reverse=True)


def _draw(target: CommandTarget, connection: Connection, manner: TopOptions) -> None:
    """Draw on the whole terminal; a lost connection is displayed, and retried."""
    console = streams.console()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            shown: RenderableType
            try:
                picture = fitted(look(connection, manner.limit), console.size.height)
                shown = Cropped(_drawn(target, picture))
            except ConnectionLost as error:
                shown = f"{target.gateway}: {error}; trying again"
            live.update(shown, refresh=True)
            time.sleep(manner.interval)


def fitted(picture: Picture, lines: int) -> Picture:
    """Return a picture with as many rows as fit the window, the same for each table."""
    tables_shown = 3 if picture.slow_readers else 2
    room = (lines - _HEADLINE_LINES) // tables_shown - _LINES_BESIDE_ROWS
    rows = max(1, room)
    return replace(
        picture,
        subjects=picture.subjects[:rows],
        connections=picture.connections[:rows],
        slow_readers=picture.slow_readers[:rows],
    )


def _print(target: CommandTarget, picture: Picture) -> None:
    if target.is_json:
        streams.json_result(to_json(_values(target, picture)))
    else:
        streams.show(_drawn(target, picture), "")


def _values(target: CommandTarget, picture: Picture) -> Answer:
    return {
        "time": picture.time_ns,
        "service": target.service,
        "status": picture.status,
        **msgspec.to_builtins(
            {
                "subjects": picture.subjects,
                "connection_list": picture.connections,
                "slow_reader_list": picture.slow_readers,
            }
        ),
    }


def _drawn(target: CommandTarget, picture: Picture) -> RenderableType:
    parts: list[RenderableType] = [
        _headline(target, picture),
        "",
        status_tables.subjects("subjects by rate", picture.subjects)
        if picture.subjects
        else "nothing is published at the moment",
        "",
        status_tables.connections("connections by rate", picture.connections)
        if picture.connections
        else "no other connections",
    ]
    if picture.slow_readers:
        parts += ["", status_tables.connections("slow readers", picture.slow_readers)]
    return Group(*parts)


def _headline(target: CommandTarget, picture: Picture) -> str:
    totals = read(picture.status, ServiceTotals)
    return (
        f"{clock(picture.time_ns)[:8]}  service {target.service} at {target.gateway}:"
        f" {totals.connections:,} connections, {rate(totals.message_rate)},"
        f" {rate(totals.byte_rate, 'B')}, {short(sum(totals.dropped.values()))} dropped,"
        f" {totals.slow_readers:,} slow readers owed {short(totals.backlog_bytes, 'B')}"
    )
