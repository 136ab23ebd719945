"""`weft sub`: show the messages of one or more patterns as they come."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args

import click

from weft import Message
from weft.cli.options.help_text import examples
from weft.cli.options.target import CommandTarget, closest_options, target_options
from weft.cli.output import streams
from weft.cli.output.message_text import body_text, clock, message_json, printable
from weft.client.options import Policy
from weft.wire.since import Since


@dataclass(frozen=True, slots=True)
class SubOptions:
    """Options of the command."""

    count: int | None
    group: str
    policy: Policy
    since: Since | None


@click.command(
    epilog=examples(
        "weft sub 'sensors.>' 'orders.*'",
        "weft sub --json 'sensors.*.temp' | jq .message.value",
        "weft sub 'orders.>' --since 5m",
    )
)
@click.argument("patterns", nargs=-1, required=True, metavar="PATTERN...")
@click.option("--count", type=click.IntRange(min=1), help="Exit after N messages (default: never).")
@click.option(
    "--group", default="", metavar="NAME", help="Join this queue group, and receive its share."
)
@click.option(
    "--policy",
    type=click.Choice(get_args(Policy)),
    default="cut",
    show_default=True,
    help="Policy for a slow consumer: disconnect (cut), or drop messages.",
)
@click.option(
    "--since",
    metavar="WHEN",
    callback=lambda _context, _option, text: None if text is None else beginning_from(text),
    help="Start with the journal: since '5m' ago, a position, or 2026-11-16T09:30Z.",
)
@closest_options
@target_options
def sub(target: CommandTarget, patterns: tuple[str, ...], **options: Any) -> None:
    """Show the messages of one or more PATTERNs as they come.

    * stands for one element, > for one or more at the end; quote them for the shell. Without
    --group the command only listens, and is never chosen to answer a request.
    """
    manner = SubOptions(**options)
    with (
        target.open() as connection,
        connection.subscribe(
            list(patterns),
            group=manner.group,
            policy=manner.policy,
            listen_only=not manner.group,
            since=manner.since,
        ) as subscription,
    ):
        streams.news(f"listening to {', '.join(patterns)} at {target.gateway}")
        for number, message in enumerate(subscription, 1):
            show(message.message, is_json=target.is_json)
            if number == manner.count:
                break


def beginning_from(text: str) -> Since:
    """Return the start of the history in a text."""
    if text.isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return moment if moment.tzinfo is not None else moment.astimezone()


def show(message: Message, *, is_json: bool, subject: str | None = None) -> None:
    """Print one message on one line; `subject` replaces the message's own."""
    named = message.subject if subject is None else subject
    if is_json:
        streams.json_result(message_json(message, named))
        return
    time = streams.style(clock(message.time), is_dim=True)
    styled = streams.style(printable(named), color="cyan")
    streams.result(f"{time}  {styled}  {body_text(message)}")
