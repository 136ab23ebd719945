"""`weft journal`: list, verify, seal and export the journal of a gateway."""

import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weft.cli.commands.journal_messages import cat, export, replay
from weft.cli.options.help_text import examples
from weft.cli.options.journal import FOLDER, JSON, segments_in
from weft.cli.output import streams
from weft.cli.output.message_text import to_json
from weft.cli.output.progress import Bar
from weft.cli.output.units import short
from weft.errors import BadOption
from weft.journal.segment.file_names import found_again, root_of

if TYPE_CHECKING:
    from weft.journal.parquet.seal import NotSealed, Sealed
    from weft.journal.segment.file_names import Segment
    from weft.journal.segment.verify import DamagedRange, SegmentResult

_SERVICE = click.option("--service", metavar="NAME", help="Only this service.")


@click.group()
def journal() -> None:
    """Inspect, verify and export a journal.

    DATA is the data folder of a gateway (--data), running or not.
    """
    for package in ("crc32c", "pyarrow"):
        if importlib.util.find_spec(package) is None:
            raise BadOption(f'a journal needs {package}: pip install "weft-mesh[journal]"')


@journal.command(epilog=examples("weft journal ls /var/lib/weft"))
@FOLDER
@_SERVICE
@JSON
def ls(folder: Path, service: str | None, is_json: bool) -> None:
    """List the segments with their positions and sizes."""
    found = segments_in(folder, service)
    if is_json:
        for each in found:
            streams.json_result(to_json(_facts(each)))
        return
    columns = ("service", "node", "state", "first ", "last ", "size ", "file")
    rows = (
        (
            *(each.service, each.node, each.state, f"{each.first:,}"),
            "" if each.last < 0 else f"{each.last:,}",
            short(_size_of(each), "B"),
            each.path.name,
        )
        for each in found
    )
    streams.show(streams.table("segments", columns, rows) if found else "the journal is empty")


@journal.command(epilog=examples("weft journal verify /var/lib/weft"))
@FOLDER
@_SERVICE
@JSON
def verify(folder: Path, service: str | None, is_json: bool) -> int:
    """Read every byte, and print damaged and missing parts; exit status 1 if there are any."""
    found = segments_in(folder, service)
    checked = list(_checked(root_of(folder), found))
    faults = [fault for each in checked for fault in each.faults]
    if is_json:
        for each in checked:
            streams.json_result(to_json({**_facts(each.segment), **_result(each)}))
    else:
        for fault in faults:
            streams.result(_fault_line(fault))
        messages = sum(each.messages for each in checked)
        streams.news(
            f"{messages:,} messages in {len(checked):,} segments are whole; {len(faults):,} faults"
        )
    return 1 if faults else 0


@journal.command(epilog=examples("weft journal seal /var/lib/weft"))
@FOLDER
@_SERVICE
@JSON
def seal(folder: Path, service: str | None, is_json: bool) -> int:
    """Convert every full segment to Parquet, as a gateway does while it runs."""
    from weft.journal.parquet.seal import NotSealed, seal_all  # noqa: PLC0415  # needs pyarrow

    segments = [each for each in segments_in(folder, service) if each.state == "full"]
    failures = done = 0
    with Bar("seal", len(segments)) as bar:
        for each_service, node in sorted({(each.service, each.node) for each in segments}):
            for made in seal_all(root_of(folder), each_service, node):
                done += 1
                failures += isinstance(made, NotSealed)
                bar.reached(done, made.path.name)
                if is_json:
                    streams.json_result(to_json(_made(made)))
                else:
                    streams.result(_said(made))
    return 1 if failures else 0


def _made(made: "Sealed | NotSealed") -> dict[str, object]:
    return {**made._asdict(), "path": str(made.path)}


def _said(made: "Sealed | NotSealed") -> str:
    from weft.journal.parquet.seal import Sealed  # noqa: PLC0415  # needs pyarrow

    if isinstance(made, Sealed):
        return f"{made.path}: {made.messages:,} messages, {short(made.size, 'B')}"
    return f"{made.path}: stays as it is: {made.why}"


def _size_of(segment: "Segment") -> int:
    """Return the size of a segment; 0 if a running gateway has renamed it."""
    try:
        return segment.path.stat().st_size
    except FileNotFoundError:
        return 0


def _check(root: Path, segment: "Segment") -> "SegmentResult | None":
    """Check a segment, also if it was renamed; None if it was removed."""
    from weft.journal.segment.verify import check_segment  # noqa: PLC0415  # slow to import

    now: Segment | None = segment
    while now is not None:
        try:
            return check_segment(now)
        except FileNotFoundError:
            now = found_again(root, segment)
    return None


def _checked(root: Path, segments: "list[Segment]") -> "Iterator[SegmentResult]":
    total = sum(_size_of(each) for each in segments)
    done = 0
    with Bar("verify", total) as bar:
        for segment in segments:
            checked = _check(root, segment)
            if checked is None:
                continue
            done += checked.size
            bar.reached(done, segment.path.name)
            yield checked


def _facts(segment: "Segment") -> dict[str, object]:
    return {
        "service": segment.service,
        "node": segment.node,
        "state": segment.state,
        "first": segment.first,
        "last": None if segment.last < 0 else segment.last,
        "size": _size_of(segment),
        "file": str(segment.path),
    }


def _result(checked: "SegmentResult") -> dict[str, object]:
    faults: Iterable[DamagedRange] = checked.faults
    return {
        "messages": checked.messages,
        "faults": [{**fault._asdict(), "path": str(fault.path)} for fault in faults],
    }


def _fault_line(fault: "DamagedRange") -> str:
    lost = f"; positions {fault.first} … {fault.last} are lost" if fault.first >= 0 else ""
    return f"{fault.path}: bytes {fault.start} … {fault.end}: {fault.why}{lost}"


for _command in (cat, export, replay):
    journal.add_command(_command)
