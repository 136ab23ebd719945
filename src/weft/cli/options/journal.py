"""Options of commands that read a journal: its folder, and the selection of messages."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.cli.output import streams
from weft.errors import NotKnown
from weft.journal.segment.file_names import root_of, segments_of, services_in
from weft.wire.frames import HEADER_BYTES
from weft.wire.subjects import checked_pattern, matches

if TYPE_CHECKING:
    from weft.journal.read.record import JournalRecord
    from weft.journal.segment.file_names import Segment

FOLDER = click.argument("folder", metavar="DATA", type=click.Path(path_type=Path, exists=True))
JSON = click.option("--json", "is_json", is_flag=True, help="JSON, an object a line.")


def segments_in(folder: Path, service: str | None) -> "list[Segment]":
    """Return the segments of one service, or of all.

    Raises:
        NotKnown: Unknown service.
    """
    root = root_of(folder)
    services = services_in(root)
    if service is not None and service not in services:
        known = ", ".join(services) or "none"
        raise NotKnown(f"there is no journal of {service!r} in {root}, only of {known}")
    chosen = services if service is None else [service]
    return [segment for each in chosen for segment in segments_of(root, each)]


@dataclass(slots=True)
class Selection:
    """Selection of messages in a journal; `holes` counts the missing ranges found."""

    folder: Path
    service: str
    node: str | None
    first: int | None
    count: int | None
    subject: str
    holes: int = 0

    def messages(self) -> "Iterator[tuple[str, JournalRecord]]":
        """Yield the messages, node by node; missing ranges are reported on standard error.

        Raises:
            NotKnown: Unknown service or node.
            BadSubject: Invalid pattern.
        """
        pattern = checked_pattern(self.subject)
        taken = 0
        for node in self._nodes():
            for kept in self._of(node):
                subject = kept.frame[HEADER_BYTES : HEADER_BYTES + kept.frame[6]]
                if matches(pattern, subject):
                    yield node, kept
                    taken += 1
                    if taken == self.count:
                        return

    def _of(self, node: str) -> "Iterator[JournalRecord]":
        from weft.journal.read.messages import history  # noqa: PLC0415  # slow to import
        from weft.journal.read.record import Hole  # noqa: PLC0415  # slow to import

        for found in history(root_of(self.folder), self.service, node, self.first):
            if isinstance(found, Hole):
                self.holes += 1
                lost = f"positions {found.first} … {found.last}"
                streams.news(f"{node}: {lost} are missing: {found.why}")
            else:
                yield found

    def _nodes(self) -> list[str]:
        nodes = sorted({each.node for each in segments_in(self.folder, self.service)})
        if self.node is not None:
            if self.node not in nodes:
                raise NotKnown(f"the journal of {self.service} has nothing of node {self.node}")
            return [self.node]
        if self.first is not None and len(nodes) > 1:
            raise click.UsageError(f"positions are a node's own: give --node, {' or '.join(nodes)}")
        return nodes


def selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a selection to a command, which gets them as one `selection`."""
    names = ("folder", "service", "node", "first", "count", "subject")

    @functools.wraps(command)
    def with_selection(**options: Any) -> Any:
        selection = Selection(**{name: options.pop(name) for name in names})
        return command(selection=selection, **options)

    for option in reversed(_OPTIONS):
        option(with_selection)
    return with_selection


_OPTIONS = (
    FOLDER,
    click.option(
        "--service", metavar="NAME", default="default", show_default=True, help="Of this service."
    ),
    click.option("--node", metavar="NAME", help="Only messages journaled by this gateway."),
    click.option("--from", "first", type=click.IntRange(min=0), help="Start at this position."),
    click.option("--count", type=click.IntRange(min=1), help="At most N messages (default: all)."),
    click.option(
        "--subject", metavar="PATTERN", default=">", help="Only messages to these subjects."
    ),
)
