"""`weft routes`: traffic of each connection to each subject, and whether it uses a lane."""

import time
from collections.abc import Iterable

import click
import msgspec

from weft import Connection
from weft.cli.options.help_text import examples
from weft.cli.options.target import CommandTarget, target_options
from weft.cli.output import streams
from weft.cli.output.fitted_table import FittedTable
from weft.cli.output.message_text import printable, to_json
from weft.cli.output.refresh import watch
from weft.cli.output.units import duration, rate, short
from weft.cli.query import ALL, Answer, ask, check_service, read


class RouteRow(msgspec.Struct, frozen=True):
    """Row of a route."""

    subject: str = ""
    connection: int = 0
    name: str = ""
    state: str = ""
    reason: str = ""
    since_ns: int = 0
    receivers: list[str] = []
    message_rate: float = 0.0
    byte_rate: float = 0.0
    direct_messages: int = 0


@click.command(
    epilog=examples(
        "weft routes",
        "weft routes sensors.london.temp",
        "weft routes --watch",
        "weft routes --json",
    )
)
@click.argument("subject", required=False)
@click.option("--watch", "is_watched", is_flag=True, help="Refresh every second.")
@target_options
def routes(target: CommandTarget, subject: str | None, is_watched: bool) -> None:
    """Show which routes are direct, and why others are not.

    A route is the traffic of one connection to one SUBJECT (default: all).
    """
    check_service(target)
    # With --watch, a lost connection is displayed.
    on_status = (lambda _: None) if is_watched else None
    with target.open(on_status=on_status) as connection:
        if is_watched:
            watch(
                target,
                lambda: _print(target, connection, subject),
                lambda: _drawn(_asked(connection, subject)),
            )
        else:
            _print(target, connection, subject)


def _asked(connection: Connection, subject: str | None) -> Answer:
    about = {} if subject is None else {"subject": subject}
    return ask(connection, "routes", {**about, **ALL})


def _print(target: CommandTarget, connection: Connection, subject: str | None) -> None:
    answer = _asked(connection, subject)
    if target.is_json:
        streams.json_result(to_json(answer))
        return
    streams.show(_drawn(answer))
    if answer.get("more"):
        streams.news(f"{answer['more']:,} more are not shown")


def _drawn(answer: Answer) -> FittedTable | str:
    rows = read(answer["routes"], list[RouteRow])
    return _table(rows) if rows else "nothing is published at the moment"


def _table(rows: Iterable[RouteRow]) -> FittedTable:
    columns = (
        *("subject", "number ", "name", "state", "since ", "rate ", "bytes ", "by lanes "),
        *("receivers", "reason"),
    )
    now_ns = time.time_ns()
    return streams.table(
        "routes",
        columns,
        (
            (
                *(printable(row.subject), str(row.connection), printable(row.name)),
                *(printable(row.state), duration(max(0.0, (now_ns - row.since_ns) / 1e9))),
                *(rate(row.message_rate), rate(row.byte_rate, "B"), short(row.direct_messages)),
                *(printable(", ".join(row.receivers)), printable(row.reason)),
            )
            for row in rows
        ),
        spare=("number ", "bytes ", "since ", "by lanes ", "receivers"),
    )
