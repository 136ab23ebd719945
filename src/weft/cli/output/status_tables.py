"""Tables of `weft status` and `weft top`, made from rows."""

from collections.abc import Iterable, Mapping

from weft.cli.output import streams
from weft.cli.output.fitted_table import FittedTable
from weft.cli.output.message_text import printable
from weft.cli.output.units import rate, short
from weft.cli.query import ConnectionRow, ServiceRow, SubjectRow


def services(rows: Mapping[str, ServiceRow]) -> FittedTable:
    """Return the table of a gateway's services, by name."""
    columns = (
        *("service", "state", "pid ", "restarts ", "connections ", "subscriptions ", "messages "),
        *("rate ", "bytes ", "dropped ", "slow readers ", "owed "),
    )
    return streams.table(
        "services",
        columns,
        (_service(*item) for item in sorted(rows.items())),
        spare=("pid ", "bytes ", "subscriptions ", "restarts ", "owed ", "messages ", "dropped "),
    )


def connections(title: str, rows: Iterable[ConnectionRow]) -> FittedTable:
    """Return the table of connections: identity, traffic and queued bytes."""
    columns = (
        *("number ", "name", "address", "client", "subscriptions ", "messages ", "rate "),
        *("bytes ", "owed ", "dropped "),
    )
    return streams.table(
        title,
        columns,
        (
            (
                *(str(row.number), printable(row.name), printable(row.address)),
                *(printable(row.client), f"{row.subscriptions:,}", short(row.messages)),
                *(rate(row.message_rate), rate(row.byte_rate, "B")),
                *(short(row.owed_bytes, "B"), short(row.dropped)),
            )
            for row in rows
        ),
        spare=("client", "subscriptions ", "bytes ", "dropped ", "messages ", "address"),
    )


def subjects(title: str, rows: Iterable[SubjectRow]) -> FittedTable:
    """Return the table of subjects and their traffic."""
    return streams.table(
        title,
        ("subject", "rate ", "bytes ", "messages ", "total "),
        (
            (
                *(printable(row.subject), rate(row.message_rate), rate(row.byte_rate, "B")),
                *(short(row.messages), short(row.bytes, "B")),
            )
            for row in rows
        ),
        spare=("total ", "messages ", "bytes "),
    )


def _service(name: str, row: ServiceRow) -> list[str]:
    worker = [printable(name), printable(row.state), str(row.pid or ""), f"{row.restarts:,}"]
    totals = row.status
    if totals is None:
        return worker
    return [
        *worker,
        *(f"{totals.connections:,}", f"{totals.subscriptions:,}", short(totals.messages_in)),
        *(rate(totals.message_rate), rate(totals.byte_rate, "B")),
        *(short(sum(totals.dropped.values())), f"{totals.slow_readers:,}"),
        short(totals.backlog_bytes, "B"),
    ]
