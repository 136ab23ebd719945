"""`weft journal`: what a journal holds, and whether it is whole."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.cli import output
from weft.cli.help_text import examples
from weft.cli.progress import Bar
from weft.cli.quantities import short
from weft.cli.shown import message_json, message_line, to_json
from weft.core.messages import Message
from weft.core.subjects import checked_pattern, matches
from weft.errors import NotKnown

if TYPE_CHECKING:
    from weft.journal.kept import Kept
    from weft.journal.places import Segment
    from weft.journal.sealing import NotSealed, Sealed
    from weft.journal.verify import Checked, Fault

_FOLDER = click.argument("folder", metavar="DATA", type=click.Path(path_type=Path, exists=True))
_SERVICE = click.option("--service", metavar="NAME", help="Only this service.")
_JSON = click.option("--json", "is_json", is_flag=True, help="JSON, an object a line.")


@click.group()
def journal() -> None:
    """Look at a journal: what it holds, and whether it is whole.

    DATA is the folder that the gateway was given with --data, whether it runs or not.
    """


@journal.command(epilog=examples("weft journal ls /var/lib/weft"))
@_FOLDER
@_SERVICE
@_JSON
def ls(folder: Path, service: str | None, is_json: bool) -> None:
    """List the segments: which positions they hold, and how large they are."""
    found = _segments(folder, service)
    if is_json:
        for each in found:
            output.json_result(to_json(_facts(each)))
        return
    columns = ("service", "node", "state", "first ", "last ", "size ", "file")
    rows = (
        (
            *(each.service, each.node, each.state, f"{each.first:,}"),
            "" if each.last < 0 else f"{each.last:,}",
            short(each.path.stat().st_size, "B"),
            each.path.name,
        )
        for each in found
    )
    output.show(output.table("segments", columns, rows) if found else "the journal is empty")


@journal.command(
    epilog=examples(
        "weft journal cat /var/lib/weft --service weather --count 10",
        "weft journal cat /var/lib/weft --service weather --subject 'sensors.>' --json",
    )
)
@_FOLDER
@click.option("--service", metavar="NAME", default="default", show_default=True)
@click.option("--node", metavar="NAME", help="Only what this gateway took; needed with --from.")
@click.option("--from", "first", type=click.IntRange(min=0), help="From this position on.")
@click.option("--count", type=click.IntRange(min=1), help="At most so many messages.")
@click.option("--subject", metavar="PATTERN", default=">", help="Only messages to these subjects.")
@_JSON
def cat(folder: Path, first: int | None, count: int | None, **chosen: Any) -> int:
    """Print the messages; what is missing is told on standard error."""
    from weft.journal.history import history  # noqa: PLC0415  # slow to import
    from weft.journal.kept import Hole  # noqa: PLC0415  # slow to import

    root = _root(folder)
    service = chosen["service"]
    nodes = sorted({each.node for each in _segments(folder, service)})
    if chosen["node"] is not None:
        nodes = [chosen["node"]] if chosen["node"] in nodes else []
        if not nodes:
            raise NotKnown(f"the journal of {service} has nothing of node {chosen['node']}")
    elif first is not None and len(nodes) > 1:
        raise click.UsageError(f"positions are a node's own: give --node, {' or '.join(nodes)}")
    pattern = checked_pattern(chosen["subject"])
    shown = holes = 0
    for node in nodes:
        for found in history(root, service, node, first):
            if isinstance(found, Hole):
                holes += 1
                output.news(
                    f"{node}: positions {found.first} … {found.last} are missing: {found.why}"
                )
            elif matches(pattern, Message.from_frame(found.frame).subject.encode()):
                output.result(_shown(found, node, chosen["is_json"]))
                shown += 1
                if shown == count:
                    return 0
    return 1 if holes else 0


@journal.command(epilog=examples("weft journal verify /var/lib/weft"))
@_FOLDER
@_SERVICE
@_JSON
def verify(folder: Path, service: str | None, is_json: bool) -> int:
    """Read every byte, and tell what is damaged or missing; the exit code is 1 if anything is."""
    found = _segments(folder, service)
    checked = list(_checked(found))
    faults = [fault for each in checked for fault in each.faults]
    if is_json:
        for each in checked:
            output.json_result(to_json({**_facts(each.segment), **_result(each)}))
    else:
        for fault in faults:
            output.result(_fault_line(fault))
        messages = sum(each.messages for each in checked)
        output.news(
            f"{messages:,} messages in {len(checked):,} segments are whole; {len(faults):,} faults"
        )
    return 1 if faults else 0


@journal.command(epilog=examples("weft journal seal /var/lib/weft"))
@_FOLDER
@_SERVICE
@_JSON
def seal(folder: Path, service: str | None, is_json: bool) -> int:
    """Make Parquet of every full segment, which a gateway does by itself while it runs."""
    from weft.journal.sealing import NotSealed, seal_all  # noqa: PLC0415  # needs pyarrow

    segments = [each for each in _segments(folder, service) if each.state == "full"]
    failures = done = 0
    with Bar("seal", len(segments)) as bar:
        for each_service, node in sorted({(each.service, each.node) for each in segments}):
            for made in seal_all(_root(folder), each_service, node):
                done += 1
                failures += isinstance(made, NotSealed)
                bar.reached(done, made.path.name)
                output.json_result(to_json(_made(made))) if is_json else output.result(_said(made))
    return 1 if failures else 0


def _made(made: "Sealed | NotSealed") -> dict[str, object]:
    return {**made._asdict(), "path": str(made.path)}


def _said(made: "Sealed | NotSealed") -> str:
    from weft.journal.sealing import Sealed  # noqa: PLC0415  # needs pyarrow

    if isinstance(made, Sealed):
        return f"{made.path}: {made.messages:,} messages, {short(made.size, 'B')}"
    return f"{made.path}: stays as it is: {made.why}"


def _root(folder: Path) -> Path:
    inner = folder / "journal"
    return inner if inner.is_dir() else folder


def _segments(folder: Path, service: str | None) -> "list[Segment]":
    from weft.journal.places import segments_of, services_in  # noqa: PLC0415  # slow to import

    root = _root(folder)
    services = services_in(root)
    if service is not None and service not in services:
        known = ", ".join(services) or "none"
        raise NotKnown(f"there is no journal of {service!r} in {root}, only of {known}")
    chosen = services if service is None else [service]
    return [segment for each in chosen for segment in segments_of(root, each)]


def _checked(segments: "list[Segment]") -> "Iterator[Checked]":
    from weft.journal.verify import check_segment  # noqa: PLC0415  # slow to import

    total = sum(each.path.stat().st_size for each in segments)
    done = 0
    with Bar("verify", total) as bar:
        for segment in segments:
            checked = check_segment(segment)
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
        "size": segment.path.stat().st_size,
        "file": str(segment.path),
    }


def _result(checked: "Checked") -> dict[str, object]:
    faults: Iterable[Fault] = checked.faults
    return {
        "messages": checked.messages,
        "faults": [{**fault._asdict(), "path": str(fault.path)} for fault in faults],
    }


def _fault_line(fault: "Fault") -> str:
    lost = f"; positions {fault.first} … {fault.last} are lost" if fault.first >= 0 else ""
    return f"{fault.path}: bytes {fault.start} … {fault.end}: {fault.why}{lost}"


def _shown(kept: "Kept", node: str, is_json: bool) -> str:
    message = Message.from_frame(kept.frame)
    if not is_json:
        return f"{kept.position:>12}  {message_line(message)}"
    header = to_json({"node": node, "position": kept.position})
    return f"{header[:-1]},{message_json(message)[1:]}"
