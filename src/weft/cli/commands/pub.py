"""`weft pub`: publish a message once or repeatedly, or every line of standard input."""

import itertools
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from weft import Connection
from weft.cli.options.body import (
    Body,
    Content,
    content_options,
    messages_in_lines,
    standard_input,
)
from weft.cli.options.help_text import examples
from weft.cli.options.target import CommandTarget, closest_options, target_options
from weft.cli.options.types import RATE_MIN, FiniteRange
from weft.cli.output import streams
from weft.cli.output.connection_status import Teller
from weft.cli.output.message_text import to_json
from weft.cli.output.progress import Bar
from weft.cli.output.units import rate, short
from weft.errors import BadMessage
from weft.wire.subjects import checked_subject


@dataclass(frozen=True, slots=True)
class PubOptions:
    """Options of the command."""

    reply: str
    masked: bool
    json_lines: bool
    count: int | None
    rate: float | None
    ack: bool


@click.command(
    epilog=examples(
        "weft pub sensors.london.temp 21.5",
        "weft pub sensors.london.temp --field value:double=21.5 --field unit=C",
        "tail -f access.log | weft pub logs.web",
    )
)
@click.argument("subject")
@content_options
@click.option("--reply", default="", metavar="SUBJECT", help="Reply subject for answers.")
@click.option(
    "--masked",
    is_flag=True,
    help="With --reply: hide the reply subject and the publisher from receivers.",
)
@click.option("--json-lines", is_flag=True, help="Every line of standard input is a JSON object.")
@click.option("--count", type=click.IntRange(min=1), help="Publish the message N times.")
@click.option(
    "--rate",
    type=FiniteRange(min=RATE_MIN),
    help="Publish at most N messages a second (default: no limit).",
)
@click.option("--ack", is_flag=True, help="Wait for the gateway's OK after every message.")
@closest_options
@target_options
def pub(target: CommandTarget, subject: str, content: Content, **options: Any) -> None:
    """Publish a message, or every line of standard input.

    The message is TEXT, or made of --field and --message-json. Lines are read if TEXT is -, or if
    there is neither TEXT nor a field.
    """
    manner = PubOptions(**options)
    # A wrong subject is reported even if there is nothing to publish.
    checked_subject(subject)
    if manner.reply:
        checked_subject(manner.reply)
    elif manner.masked:
        raise click.UsageError("--masked needs --reply")
    messages = _messages(content, manner)
    teller = Teller()
    with target.open(teller) as connection, Bar(subject, manner.count) as bar:
        sent = _Sent()
        try:
            for message in _paced(messages, manner.rate):
                _publish(connection, subject, message, manner, is_first=sent.messages == 0)
                sent.add(message)
                bar.reached(sent.messages, rate(sent.message_rate))
        except BadMessage as error:
            # The error tells how many lines were published, so that the user can continue there.
            connection.flush()
            raise BadMessage(f"{error}; {sent.before}") from error
        connection.flush()
    sent.report(subject, target.is_json)
    loss = teller.loss(f"{sent.messages:,} messages to {subject}")
    # Acknowledged messages, such as the first one, have arrived despite a lost connection.
    if loss is not None and sent.messages > 1 and not manner.ack:
        raise loss


class _Sent:
    """Statistics of the published messages."""

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0
        self._start_s = time.monotonic()

    @property
    def seconds(self) -> float:
        return max(time.monotonic() - self._start_s, 1e-9)

    @property
    def message_rate(self) -> float:
        return self.messages / self.seconds

    @property
    def before(self) -> str:
        """Text about the lines published before an invalid one."""
        if self.messages == 0:
            return "nothing is published"
        if self.messages == 1:
            return "the line before it is published"
        return f"the {self.messages:,} lines before it are published"

    def add(self, message: Body) -> None:
        self.messages += 1
        self.bytes += len(message if isinstance(message, bytes) else message.encode())

    def report(self, subject: str, is_json: bool) -> None:
        seconds = self.seconds
        if is_json:
            facts = {"subject": subject, "messages": self.messages, "bytes": self.bytes}
            streams.json_result(to_json({**facts, "seconds": seconds}))
        elif streams.is_terminal(sys.stderr):
            each = f" in {short(seconds, 's')}, {rate(self.message_rate)}"
            plural = "" if self.messages == 1 else "s"
            streams.news(
                f"published {self.messages:,} message{plural} to {subject}"
                + (each if self.messages > 1 else "")
            )


def _messages(content: Content, manner: PubOptions) -> Iterator[Body]:
    if content.is_given and content.text != "-":
        if manner.json_lines:
            raise click.UsageError("--json-lines is for standard input, and there is a message")
        return itertools.repeat(content.message(), manner.count or 1)
    if content.has_fields:
        raise click.UsageError("give either fields or lines to publish, not both")
    if manner.count is not None:
        raise click.UsageError("--count repeats one message, not lines of standard input")
    # A program may run without standard input.
    if sys.stdin is None or (content.text is None and sys.stdin.isatty()):
        raise click.UsageError("nothing to publish: give TEXT, --field or lines to read")
    return messages_in_lines(standard_input(), manner.json_lines)


def _paced(messages: Iterator[Body], rate_limit: float | None) -> Iterator[Body]:
    """Yield the messages at the given rate; a delay is not made up twice."""
    start_s = time.monotonic()
    for number, message in enumerate(messages):
        if rate_limit is not None:
            early_s = start_s + number / rate_limit - time.monotonic()
            if early_s > 0:
                time.sleep(early_s)
        yield message


def _publish(
    connection: Connection, subject: str, message: Body, manner: PubOptions, *, is_first: bool
) -> None:
    # The first is always acknowledged, to report a refused subject.
    if manner.ack or is_first:
        connection.publish(
            subject, message, reply=manner.reply, masked=manner.masked, acknowledge=True
        )
    else:
        connection.publish(subject, message, reply=manner.reply, masked=manner.masked)
