"""Messages of a journal: printed, written to a file, or published again."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.cli.options.help_text import examples
from weft.cli.options.journal import JSON, Selection, selection_options
from weft.cli.options.target import DEFAULT_GATEWAY, KEY_FILE, CommandTarget
from weft.cli.options.types import FiniteRange
from weft.cli.output import streams
from weft.cli.output.message_text import bare_payload, message_json, message_line, to_json
from weft.cli.output.progress import Bar
from weft.errors import BadOption
from weft.wire.message.message import Message

if TYPE_CHECKING:
    from weft.journal.read.record import JournalRecord

_ROWS = 65_536
_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class RepublishOptions:
    """Options of replay."""

    gateway: str
    to_service: str | None
    prefix: str | None
    speed: float
    tls_ca: str | None
    key_file: str | None


@click.command(
    epilog=examples(
        "weft journal cat /var/lib/weft --service weather --count 10",
        "weft journal cat /var/lib/weft --service weather --subject 'sensors.>' --json",
    )
)
@selection_options
@JSON
def cat(selection: Selection, is_json: bool) -> int:
    """Print the messages; missing ones are reported on standard error, with exit status 1."""
    for node, kept in selection.messages():
        if is_json:
            streams.json_result(_as_json(node, kept))
        else:
            streams.result(_as_line(kept))
    return 1 if selection.holes else 0


@click.command(
    epilog=examples(
        "weft journal export /var/lib/weft week.parquet --service weather",
        "weft journal export /var/lib/weft alarms.jsonl --subject 'alarms.>'",
    )
)
@selection_options
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def export(selection: Selection, file: Path) -> int:
    """Write the messages to FILE: .parquet, or .jsonl with one object per line."""
    writers = {".parquet": _write_parquet, ".jsonl": _write_jsonl}
    if file.suffix not in writers:
        raise BadOption(f"{file.name} must end in .parquet or .jsonl")
    # To a temporary file first, so that FILE is always complete.
    aside = file.with_name(f".{file.name}.part")
    try:
        with Bar("export", None) as bar:
            count = writers[file.suffix](aside, selection, bar)
        aside.replace(file)
    finally:
        aside.unlink(missing_ok=True)
    streams.news(f"{count:,} messages are in {file}")
    return 1 if selection.holes else 0


@click.command(
    epilog=examples(
        "weft journal replay /var/lib/weft --service weather --prefix again",
        "weft journal replay /var/lib/weft --subject 'sensors.>' --speed 10",
    )
)
@selection_options
@click.option(
    "--gateway",
    default=DEFAULT_GATEWAY,
    show_default=True,
    metavar="HOST:PORT",
    help="The gateway to publish to.",
)
@click.option("--to-service", metavar="NAME", help="Service to publish to (default: --service).")
@click.option("--prefix", metavar="SUBJECT", help="Prefix for every subject.")
@click.option(
    "--speed",
    type=FiniteRange(min=0.0),
    default=1.0,
    show_default=True,
    help="Speed relative to the original; 0 publishes as fast as possible.",
)
@click.option("--tls-ca", type=click.Path(dir_okay=False), help="Trust these certificates.")
@KEY_FILE
def replay(selection: Selection, **options: Any) -> int:
    """Publish the messages again, as new ones, at their original pace."""
    manner = RepublishOptions(**options)
    service = manner.to_service or selection.service
    target = CommandTarget(
        *(manner.gateway, service, "", manner.tls_ca), is_json=False, key_file=manner.key_file
    )
    prefix = f"{manner.prefix}." if manner.prefix else ""
    count = 0
    with target.open() as connection, Bar("replay", None) as bar:
        for message in _paced(selection, manner.speed):
            payload = bare_payload(message)
            connection.publish(prefix + message.subject, message if payload is None else payload)
            count += 1
            bar.reached(count, f"{count:,} messages")
        connection.flush()
    streams.news(f"{count:,} messages were published to {service} at {target.gateway}")
    return 1 if selection.holes else 0


def _paced(selection: Selection, speed: float) -> Iterator[Message]:
    """Yield the messages, each when it is due."""
    began = time.monotonic()
    first_ns: int | None = None
    for _, kept in selection.messages():
        message = Message.from_frame(kept.frame)
        if first_ns is None:
            first_ns = message.time
        if speed:
            due = began + (message.time - first_ns) / _S / speed
            time.sleep(max(due - time.monotonic(), 0.0))
        yield message


def _write_jsonl(file: Path, selection: Selection, bar: Bar) -> int:
    count = 0
    with file.open("w", encoding="utf-8") as stream:
        for node, kept in selection.messages():
            stream.write(_as_json(node, kept) + "\n")
            count += 1
            bar.reached(count, f"{count:,} messages")
    return count


def _write_parquet(file: Path, selection: Selection, bar: Bar) -> int:
    from weft.journal.parquet.columns import Columns  # noqa: PLC0415  # slow to import
    from weft.journal.parquet.row_groups import GROUP_BYTES  # noqa: PLC0415  # slow to import
    from weft.journal.parquet.schema import batch_of, writer_of  # noqa: PLC0415  # slow to import

    count = 0
    columns = Columns()
    with writer_of(file) as writer:
        for _, kept in selection.messages():
            is_over = columns.size + len(kept.frame) > GROUP_BYTES
            if columns.rows and (columns.rows == _ROWS or is_over):
                writer.write_batch(batch_of(columns))
                columns = Columns()
            columns.add(kept.frame, kept.position, 1)
            count += 1
            bar.reached(count, f"{count:,} messages")
        writer.write_batch(batch_of(columns))
    return count


def _as_line(kept: "JournalRecord") -> str:
    return f"{kept.position:>12}  {message_line(Message.from_frame(kept.frame))}"


def _as_json(node: str, kept: "JournalRecord") -> str:
    header = to_json({"node": node, "position": kept.position})
    return f"{header[:-1]},{message_json(Message.from_frame(kept.frame))[1:]}"
