"""`weft channel`: open, join, list and close channels, and publish in them."""

from dataclasses import asdict, dataclass
from typing import Any

import click

from weft import Channel, ChannelFacts
from weft.cli.commands.sub import show as show_message
from weft.cli.options.body import Content, content_options
from weft.cli.options.help_text import examples
from weft.cli.options.password import PasswordSource, password_options
from weft.cli.options.target import CommandTarget, Option, target_options
from weft.cli.output import streams
from weft.cli.output.message_text import printable, to_json
from weft.cli.output.units import rate
from weft.cli.query import check_service
from weft.wire.subjects import checked_subject

_NAME: Option = click.argument("channel", metavar="CHANNEL")
_SUBJECT: Option = click.option(
    "--subject",
    "patterns",
    metavar="PATTERN",
    multiple=True,
    default=[">"],
    show_default=True,
    help="Show the messages to this pattern; may be repeated.",
)
_COUNT: Option = click.option(
    "--count", type=click.IntRange(min=1), help="Exit after N messages (default: never)."
)


@dataclass(frozen=True, slots=True)
class ChannelOptions:
    """Options of open and join."""

    patterns: tuple[str, ...]
    count: int | None


@click.group()
def channel() -> None:
    """Open, join and list channels: subjects with members."""


@channel.command(
    "open",
    epilog=examples(
        "weft channel open games.chess",
        "weft channel open games.chess --password-file secret.txt",
    ),
)
@_NAME
@_SUBJECT
@_COUNT
@password_options
@target_options
def open_(target: CommandTarget, channel: str, source: PasswordSource, **options: Any) -> None:
    """Open a CHANNEL, stay a member until ^C, and show its messages."""
    password = source.password()
    with target.open() as connection, connection.open_channel(channel, password) as opened:
        if opened.silent:
            names = ", ".join(map(printable, opened.silent))
            streams.news(f"these gateways did not answer: {names}")
        _listen(target, opened, ChannelOptions(**options), f"opened {channel}")


@channel.command(
    epilog=examples(
        "weft channel join games.chess --ask-password",
        "weft channel join games.chess --subject 'moves.*' --json | jq .message.move",
    )
)
@_NAME
@_SUBJECT
@_COUNT
@password_options
@target_options
def join(target: CommandTarget, channel: str, source: PasswordSource, **options: Any) -> None:
    """Join a CHANNEL, stay a member until ^C, and show its messages."""
    password = source.password()
    with target.open() as connection, connection.join_channel(channel, password) as joined:
        _listen(target, joined, ChannelOptions(**options), f"joined {channel}")


@channel.command(
    epilog=examples(
        "weft channel pub games.chess moves.white e4",
        "weft channel pub games.chess moves.white --field move=e4 --password-file secret.txt",
    )
)
@_NAME
@click.argument("subject")
@content_options
@password_options
@target_options
def pub(
    target: CommandTarget, channel: str, subject: str, content: Content, source: PasswordSource
) -> None:
    """Join a CHANNEL, publish one message in it, and leave."""
    # A wrong subject is reported whether the channel exists or not.
    checked_subject(subject)
    if not content.is_given:
        raise click.UsageError("nothing to publish: give TEXT or --field")
    message, password = content.message(), source.password()
    with target.open() as connection, connection.join_channel(channel, password) as joined:
        joined.publish(subject, message, acknowledge=True)


@channel.command(
    "list", epilog=examples("weft channel list", "weft channel list --json | jq .name")
)
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=100,
    show_default=True,
    help="Show at most N channels, those with the most members.",
)
@target_options
def list_(target: CommandTarget, limit: int) -> None:
    """List the channels without a password; services and admins see all."""
    check_service(target)
    with target.open() as connection:
        found = connection.channels(limit)
    if target.is_json:
        for each in found:
            streams.json_result(to_json(asdict(each)))
    elif found:
        columns = ("channel", "password", "members ", "gateways ", "id")
        rows = [
            (
                *(printable(each.name), "yes" if each.is_protected else ""),
                *(f"{each.members:,}", f"{each.gateways:,}", printable(each.id)),
            )
            for each in found
        ]
        streams.show(streams.table("channels", columns, rows))
    else:
        streams.show("there is no channel to be seen")
    if found.more:
        streams.news(f"{found.more:,} more channels are not shown")


@channel.command(epilog=examples("weft channel show games.chess"))
@_NAME
@target_options
def show(target: CommandTarget, channel: str) -> None:
    """Show the opener and the members of a CHANNEL."""
    check_service(target)
    with target.open() as connection:
        facts = connection.channel_facts(channel)
    if target.is_json:
        places = [each._asdict() for each in facts.places]
        streams.json_result(to_json({**asdict(facts), "places": places}))
    else:
        streams.show(*_drawn(facts))


@channel.command(epilog=examples("weft channel close games.chess --key-file service.key"))
@_NAME
@target_options
def close(target: CommandTarget, channel: str) -> None:
    """Close a CHANNEL for all members; needs a key of a service or an admin."""
    check_service(target)
    with target.open() as connection:
        connection.close_channel(channel)
    if target.is_json:
        streams.json_result(to_json({"channel": channel, "closed": True}))
    else:
        streams.news(f"closed {channel}")


def _listen(target: CommandTarget, joined: Channel, manner: ChannelOptions, done: str) -> None:
    with joined.subscribe(manner.patterns, listen_only=True) as subscription:
        # Only now are messages received that others publish when they read this line.
        streams.news(f"{done} at {target.gateway}")
        for number, received in enumerate(subscription, 1):
            message = received.message
            show_message(message, is_json=target.is_json, subject=joined.subject_of(message))
            if number == manner.count:
                break


def _drawn(facts: ChannelFacts) -> list[Any]:
    password = "with a password" if facts.is_protected else "without a password"
    confirmed = "" if facts.is_confirmed else ", not confirmed by its gateways at the moment"
    columns = ("gateway", "members ", "rate ")
    rows = [
        (printable(each.gateway), f"{each.members:,}", rate(each.message_rate))
        for each in facts.places
    ]
    return [
        f"channel {printable(facts.name)}, {password}{confirmed}",
        f"id {printable(facts.id)}, epoch {facts.epoch}",
        f"opened by {printable(facts.owner)} at {printable(facts.gateway)}",
        "",
        streams.table("members", columns, rows),
    ]
