"""`weft req`: send a request and print the answer, or several answers."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from weft import Message
from weft.cli.options.body import Content, content_options
from weft.cli.options.help_text import examples
from weft.cli.options.target import CommandTarget, closest_options, target_options
from weft.cli.options.types import SECONDS
from weft.cli.output import streams
from weft.cli.output.message_text import bare_text, body_text, is_readable, message_json, printable
from weft.cli.output.units import short
from weft.client.received import Received
from weft.errors import BadMessage, TimedOut


@dataclass(frozen=True, slots=True)
class ReqOptions:
    """Options of the command."""

    timeout: float
    many: bool
    count: int | None
    quiet: float | None
    masked: bool


@click.command(
    epilog=examples(
        "weft req quotes.get VOD",
        "weft req quotes.get --field symbol=VOD --timeout 5",
        "weft req inventory.who --many --quiet 0.5",
    )
)
@click.argument("subject")
@content_options
@click.option(
    "--timeout",
    type=SECONDS,
    default=2.0,
    show_default=True,
    metavar="S",
    help="Timeout in seconds.",
)
@click.option("--many", is_flag=True, help="Collect the answers of all responders.")
@click.option("--count", type=click.IntRange(min=1), help="With --many: stop after N answers.")
@click.option(
    "--quiet",
    type=SECONDS,
    metavar="S",
    help="With --many: stop after S seconds without a further answer.",
)
@click.option("--masked", is_flag=True, help="Hide the requester from the responders.")
@closest_options
@target_options
def req(target: CommandTarget, subject: str, content: Content, **options: Any) -> None:
    """Send a request to a SUBJECT and print the answer."""
    manner = ReqOptions(**options)
    if not manner.many and (manner.count is not None or manner.quiet is not None):
        raise click.UsageError("--count and --quiet need --many")
    body = content.message()
    with target.open() as connection:
        if manner.many:
            answers: Sequence[Received] = connection.gather(
                subject,
                body,
                masked=manner.masked,
                count=manner.count,
                quiet_s=manner.quiet,
                deadline_s=manner.timeout,
            )
        else:
            answers = [
                connection.send_request(subject, body, timeout=manner.timeout, masked=manner.masked)
            ]
    for answer in answers:
        show(answer.message, is_json=target.is_json)
    if not answers:
        raise TimedOut(f"no answer from {subject} within {short(manner.timeout, 's')}")
    broken = sum(not is_readable(answer.message) for answer in answers)
    if broken:
        raise BadMessage(f"{broken} of {len(answers)} answers cannot be read")


def show(answer: Message, *, is_json: bool) -> None:
    """Print one answer: a text as it is, for scripts."""
    if is_json:
        streams.json_result(message_json(answer))
        return
    text = bare_text(answer) if is_readable(answer) else None
    if text is None:
        text = body_text(answer)
    elif streams.is_terminal(sys.stdout):
        text = "\n".join(printable(line) for line in text.splitlines())
    streams.result(text)
