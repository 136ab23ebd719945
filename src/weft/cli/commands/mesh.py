"""`weft mesh`: the gateways of a mesh, the links of one of them, and subscribers of a subject."""

from dataclasses import dataclass
from typing import Any

import click
from rich.console import Group, RenderableType

from weft import Connection
from weft.cli.options.help_text import examples
from weft.cli.options.target import CommandTarget, target_options
from weft.cli.output import mesh_tables, streams
from weft.cli.output.mesh_rows import ListenersPage, MeshPage
from weft.cli.output.message_text import printable, to_json
from weft.cli.output.refresh import watch
from weft.cli.query import ALL, Answer, ask, check_service, read


@dataclass(frozen=True, slots=True)
class MeshOptions:
    """Options of the command."""

    tree: bool
    interest: bool
    listeners: str | None
    watch: bool


@click.command(
    epilog=examples(
        "weft mesh",
        "weft mesh --tree",
        "weft mesh --listeners sensors.london.temp",
        "weft mesh --interest --json",
    )
)
@click.option("--tree", is_flag=True, help="Show the paths of messages from this gateway.")
@click.option("--interest", is_flag=True, help="Show the subscriptions of each gateway.")
@click.option("--listeners", metavar="SUBJECT", help="Show the subscribers of this subject.")
@click.option("--watch", is_flag=True, help="Refresh every second.")
@target_options
def mesh(target: CommandTarget, **options: Any) -> None:
    """Show the gateways of a mesh and their links."""
    manner = MeshOptions(**options)
    if manner.tree + manner.interest + (manner.listeners is not None) > 1:
        raise click.UsageError("ask for one of --tree, --interest and --listeners")
    check_service(target)
    # With --watch, a lost connection is displayed.
    on_status = (lambda _: None) if manner.watch else None
    with target.open(on_status=on_status) as connection:
        if not manner.watch:
            _print(target, manner, connection)
        else:
            watch(
                target,
                lambda: _print(target, manner, connection),
                lambda: Group(*_drawn(manner, _asked(connection, manner))),
            )


def _asked(connection: Connection, manner: MeshOptions) -> Answer:
    if manner.listeners is not None:
        return ask(connection, "listeners", {"subject": manner.listeners, **ALL})
    return ask(connection, "mesh", {"interest": manner.interest, **ALL})


def _print(target: CommandTarget, manner: MeshOptions, connection: Connection) -> None:
    answer = _asked(connection, manner)
    if target.is_json:
        streams.json_result(to_json(answer))
    else:
        streams.show(*_drawn(manner, answer))
        _tell_more(answer)


def _drawn(manner: MeshOptions, answer: Answer) -> list[RenderableType]:
    if manner.listeners is not None:
        return _listeners(read(answer, ListenersPage))
    page = read(answer, MeshPage)
    if manner.tree:
        return [mesh_tables.tree(page.nodes)]
    if manner.interest:
        return [mesh_tables.interest(page.interest) if page.interest else "no subscriptions"]
    return _mesh(page)


def _mesh(page: MeshPage) -> list[RenderableType]:
    there = sum(node.state in ("here", "linked", "reached") for node in page.nodes)
    name = printable(page.gateway)
    count = "1 gateway is there" if there == 1 else f"{there:,} gateways are there"
    is_alone = len(page.nodes) == 1 and not page.links and not page.targets
    parts: list[RenderableType] = [
        f"gateway {name} is alone" if is_alone else f"mesh as gateway {name} sees it: {count}",
        "",
        mesh_tables.nodes(page.nodes),
    ]
    if page.links:
        parts += ["", mesh_tables.links(f"links of {name}", page.links)]
    if page.targets:
        parts += ["", mesh_tables.targets(page.targets)]
    if not is_alone:
        parts += ["", mesh_tables.counts(page.counts)]
    if page.not_linked:
        parts.append(mesh_tables.not_linked(page.not_linked))
    return parts


def _listeners(page: ListenersPage) -> list[RenderableType]:
    subject = printable(page.subject)
    if not page.listeners and not page.gateways:
        return [f"{subject} has no subscribers"]
    parts: list[RenderableType] = []
    if page.listeners:
        title = f"connections of {printable(page.gateway)} that listen to {subject}"
        parts += [mesh_tables.subscriptions(title, page.listeners)]
    if page.gateways:
        parts += ["", mesh_tables.wanting(f"gateways that want {subject}", page.gateways)]
    return parts if page.listeners else parts[1:]


def _tell_more(answer: Answer) -> None:
    for name, count in answer.items():
        if name.startswith("more") and count:
            what = name.removeprefix("more").lstrip("_") or "listeners"
            streams.news(f"{count:,} more {what} are not shown")
