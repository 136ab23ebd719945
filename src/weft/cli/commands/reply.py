"""`weft reply`: answer requests with a text, fields, the request itself, or a program."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from weft import BlockingReceived, Message
from weft.cli.commands import sub
from weft.cli.options.body import Body, Content, content_options
from weft.cli.options.help_text import examples
from weft.cli.options.target import CommandTarget, closest_options, target_options
from weft.cli.options.types import SECONDS
from weft.cli.output import streams
from weft.cli.output.message_text import bare_payload, bare_text
from weft.cli.shell_command import run_shell
from weft.errors import BadField, ProtocolError, ResponderGone, TimedOut

Answer = Callable[[Message], Body]


@dataclass(frozen=True, slots=True)
class ReplyOptions:
    """Options of the command."""

    echo: bool
    command: str | None
    timeout: float
    count: int | None
    group: str


@click.command(
    epilog=examples(
        "weft reply time.now --command 'date -Is'",
        "weft reply echo --echo",
        "weft reply 'quotes.*' --field price:double=101.5",
    )
)
@click.argument("subject", metavar="PATTERN")
@content_options
@click.option("--echo", is_flag=True, help="Answer with the request itself.")
@click.option(
    "--command",
    metavar="CMD",
    help="Run a shell command for each request, one after the other: the request is its standard"
    " input, WEFT_SUBJECT the subject, its standard output the answer.",
)
@click.option(
    "--timeout",
    type=SECONDS,
    default=30.0,
    show_default=True,
    metavar="S",
    help="Timeout of the command in seconds.",
)
@click.option("--count", type=click.IntRange(min=1), help="Exit after N answers (default: never).")
@click.option(
    "--group",
    default="",
    metavar="NAME",
    help="Answer as a member of this queue group, which also shares messages with a reply"
    " subject. A request goes to one responder in any case. Members get no lanes.",
)
@closest_options
@target_options
def reply(target: CommandTarget, subject: str, content: Content, **options: Any) -> None:
    """Answer the requests that match a PATTERN, until ^C."""
    manner = ReplyOptions(**options)
    answer = _answer(content, manner)
    answered = 0
    with (
        target.open() as connection,
        connection.subscribe(subject, group=manner.group) as subscription,
    ):
        group = f", in group {manner.group}" if manner.group else ""
        streams.news(f"answering {subject} at {target.gateway}{group}")
        for received in subscription:
            request = received.message
            sub.show(request, is_json=target.is_json)
            if not request.reply:
                continue
            _respond(received, answer)
            answered += 1
            if answered == manner.count:
                break
        connection.flush()


def _respond(received: BlockingReceived, answer: Answer) -> None:
    """Answer one request; an error is sent as an error answer."""
    try:
        received.respond(answer(received.message))
    except (BadField, ProtocolError, ResponderGone, TimedOut) as error:
        streams.news(f"{received.subject}: {error}")
        received.respond_error(str(error))


def _answer(content: Content, manner: ReplyOptions) -> Answer:
    ways = [content.is_given, manner.echo, manner.command is not None]
    if sum(ways) != 1:
        raise click.UsageError("answer with one of TEXT, --field, --echo and --command")
    if manner.echo:
        return _same
    if manner.command is not None:
        command, timeout_s = manner.command, manner.timeout
        return lambda request: _run(command, request, timeout_s)
    fixed = content.message()
    return lambda _: fixed


def _same(request: Message) -> Message:
    return request


def _run(command: str, request: Message, timeout_s: float) -> bytes:
    given = bare_payload(request)
    if given is None:
        text = bare_text(request)
        given = (request.to_json() if text is None else text).encode()
    # The request is data on a pipe, never part of the command.
    written = run_shell(command, given, timeout_s, {"WEFT_SUBJECT": request.subject})
    return written.removesuffix(b"\n")
