"""`weft trace`: the path of a message to a subject, and where and why it would be dropped."""

import click

from weft.cli.options.help_text import examples
from weft.cli.options.target import CommandTarget, target_options
from weft.cli.output import streams
from weft.cli.output.mesh_rows import SubscriptionRow, TraceGatewayRow, TracePage
from weft.cli.output.message_text import printable, to_json
from weft.cli.output.units import latency
from weft.cli.query import ALL, ask, check_service, read


@click.command(
    epilog=examples(
        "weft trace sensors.london.temp",
        "weft trace orders.new --gateway paris:7411 --json",
    )
)
@click.argument("subject")
@target_options
def trace(target: CommandTarget, subject: str) -> None:
    """Show where a message to a SUBJECT would go.

    A probe takes the path of a message, without being delivered. Every gateway on the path
    reports its subscriptions, and the links that could not forward the probe.
    """
    check_service(target)
    with target.open() as connection:
        answer = ask(connection, "trace", {"subject": subject, **ALL})
    page = read(answer, TracePage)
    if target.is_json:
        streams.json_result(to_json(answer))
        return
    for line in lines(page):
        streams.result(line)
    if page.more:
        streams.news(f"{page.more:,} more gateways are not shown")


def lines(page: TracePage) -> list[str]:
    """Return a trace in words."""
    shown = [f"{printable(page.subject)}, published at {printable(page.gateway)}"]
    depths: dict[str, int] = {}
    by_name = {place.name: place for place in page.gateways}
    for place in page.gateways:
        depths[place.name] = depths.get(place.by, -1) + 1
        indent = "  " * depths[place.name]
        shown.append(f"{indent}{_way(place, by_name)}: {_said(place)}")
    if not page.is_heard:
        shown.append(_unheard(page))
    for share in page.groups:
        member = f"{printable(share.name)} at " if share.name else ""
        there = by_name.get(share.gateway)
        is_away = there is not None and there.state == "dropped"
        waits = ", once it can be reached" if is_away else ""
        shown.append(
            f"group {printable(share.group)}: the next message goes to"
            f" {member}{printable(share.gateway)}{waits}"
        )
    if page.responder.gateway:
        name = f"{printable(page.responder.name)} at " if page.responder.name else ""
        shown.append(f"a request would go to {name}{printable(page.responder.gateway)}")
    return shown


def _unheard(page: TracePage) -> str:
    if all(place.state in ("here", "answered") for place in page.gateways):
        return "it has no subscribers"
    return "no subscribers are known: some gateways have not answered"


def _way(place: TraceGatewayRow, by_name: dict[str, TraceGatewayRow]) -> str:
    """Return the link that the probe took, with its round-trip time."""
    name = printable(place.name)
    if not place.by:
        return f"{name} (here)"
    before = by_name.get(place.by)
    onward = () if before is None else before.onward
    rtt_ms = next((each.rtt_ms for each in onward if each.number == place.number), 0.0)
    took = f" ({latency(rtt_ms / 1e3)})" if rtt_ms else ""
    return f"{printable(place.by)} → {name}{took}"


def _said(place: TraceGatewayRow) -> str:
    if place.state == "dropped":
        return f"dropped: {printable(place.text)}"
    if place.state == "silent":
        return printable(place.text)
    parts = []
    count = len(place.subscriptions) + place.more
    if count:
        listed = ", ".join(map(_subscription, place.subscriptions))
        more = f" and {place.more:,} more" if place.more else ""
        parts.append(f"{count:,} subscription{'s' if count > 1 else ''}: {listed}{more}")
    elif place.by and not place.is_wanted:
        parts.append("passes it on")
    else:
        parts.append("no subscription")
    if place.is_kept:
        parts.append("kept in the journal")
    return "; ".join(parts)


def _subscription(row: SubscriptionRow) -> str:
    notes = []
    if row.group:
        notes.append(f"group {printable(row.group)}{', next' if row.is_next else ''}")
    if row.listen_only:
        notes.append("listens only")
    if row.is_behind:
        notes.append(f"behind, {printable(row.policy)}")
    about = f" ({', '.join(notes)})" if notes else ""
    return f"{printable(row.pattern)} of {printable(row.name)}{about}"
