"""`weft admin`: send an admin command to one gateway of a mesh, a region, or all."""

import functools
import os
import time
from collections.abc import Callable
from typing import Any

import click
import msgspec

from weft.cli import errors as failures
from weft.cli.options.help_text import examples
from weft.cli.options.target import CommandTarget, target_options
from weft.cli.output import streams
from weft.cli.output.fitted_table import FittedTable
from weft.cli.output.message_text import printable, to_json
from weft.cli.output.units import rate, short
from weft.cli.query import check_service, read
from weft.errors import BadOption
from weft.gateway.keys.admin_key import identity_of
from weft.mesh.admin.admin_command import ALL, NODE, NONCE_BYTES, CommandOrder, check_target, sign
from weft.mesh.admin.relay import DONE

# Validity of a command: longer than the differences of clocks, too short to be worth stealing.
LIFE_MS = 30_000
# A gateway waits a little less for the other gateways.
TIMEOUT_S = 8.0

Command = Callable[..., Any]


class GatewayNumbers(msgspec.Struct, frozen=True):
    """Status of a gateway."""

    connections: int = 0
    subscriptions: int = 0
    messages_in: int = 0
    message_rate: float = 0.0
    slow_readers: int = 0
    nodes: int = 0
    links: int = 0
    lost: int = 0
    uptime_s: float = 0.0
    version: str = ""


class CommandRow(msgspec.Struct, frozen=True):
    """Result of a command at one gateway."""

    name: str
    state: str
    text: str = ""
    region: str = ""
    facts: GatewayNumbers | None = None


class CommandPage(msgspec.Struct, frozen=True):
    """Results of a command."""

    gateways: tuple[CommandRow, ...] = ()


@click.group()
def admin() -> None:
    """Send an administrator's command to gateways of a mesh.

    A command is signed with the key of an admin, and each of its target gateways verifies that.
    It can be given at any gateway of the mesh.
    """


def _command(default: str | None = None) -> Callable[[Command], Command]:
    """Add the option of the target gateways, and the shared ones, to a command."""

    def wrapped(command: Command) -> Command:
        @functools.wraps(command)
        def with_target(target: CommandTarget, to: str, **options: Any) -> int:
            return _give(target, to, command(**options))

        extra = {"required": True} if default is None else {"default": default}
        return click.option(
            "--to",
            metavar="WHOM",
            show_default=True,
            help="The target gateways: all, region:NAME, the name of a gateway, or node:ID.",
            **extra,
        )(target_options(with_target))

    return wrapped


@admin.command(epilog=examples("weft admin status", "weft admin status --to region:north --json"))
@_command(default=ALL)
def status() -> tuple[str, str]:
    """Show the status of gateways."""
    return "status", ""


@admin.command(epilog=examples("weft admin drain --to paris"))
@_command()
def drain() -> tuple[str, str]:
    """Drain gateways: their clients reconnect elsewhere, and the gateways stop."""
    return "drain", ""


@admin.command(epilog=examples("weft admin reload --to all"))
@_command()
def reload() -> tuple[str, str]:
    """Reload the settings of gateways."""
    return "reload", ""


@admin.command(epilog=examples("weft admin log debug --to paris"))
@click.argument("level")
@_command()
def log(level: str) -> tuple[str, str]:
    """Set the log LEVEL of gateways: debug, info, warning or error."""
    return "log", level


@admin.command(epilog=examples("weft admin close 17 --to paris", "weft admin close bot --to all"))
@click.argument("connection")
@_command()
def close(connection: str) -> tuple[str, str]:
    """Close a CONNECTION, by its number, or all with a name; `weft top` shows both."""
    return "close", connection


@admin.command(epilog=examples("weft admin ban a1b2c3d4 --to all"))
@click.argument("key")
@_command()
def ban(key: str) -> tuple[str, str]:
    """Revoke a KEY, by its id or name, and close its connections."""
    return "ban", key


@admin.command(epilog=examples("weft admin links 4 --to oslo"))
@click.argument("count", type=click.IntRange(min=1))
@_command()
def links(count: int) -> tuple[str, str]:
    """Limit the links that gateways dial to COUNT."""
    return "links", str(count)


def _give(target: CommandTarget, to: str, order: tuple[str, str]) -> int:
    """Send a command and print its results; return the exit status."""
    whom = to if to == ALL or ":" in to else f"{NODE}{to}"
    check_target(whom)
    key = target.key()
    if not key:
        raise BadOption("a command needs the key of an admin: --key-file FILE, or WEFT_KEY")
    signed = sign(
        identity_of(key),
        CommandOrder(target.service, whom, *order),
        os.urandom(NONCE_BYTES),
        time.time_ns() // 1_000_000,
        LIFE_MS,
    )
    check_service(target)
    with target.open() as connection:
        answer = connection.send_request(
            "_WEFT.ask.command", signed._asdict(), timeout=TIMEOUT_S
        ).to_dict()
    page = read(answer, CommandPage)
    if target.is_json:
        streams.json_result(to_json(answer))
    elif page.gateways:
        streams.show(_table(page))
    if not page.gateways:
        raise BadOption(f"no gateway is {printable(to)}: weft mesh lists the gateways")
    return 0 if all(each.state == DONE for each in page.gateways) else failures.FAILED


def _table(page: CommandPage) -> FittedTable:
    if not any(each.facts for each in page.gateways):
        rows = ((_name(each), each.state, printable(each.text)) for each in page.gateways)
        return streams.table("", ("gateway", "state", "result"), rows)
    columns = (
        *("gateway", "state", "version", "up ", "connections ", "subscriptions ", "messages "),
        *("rate ", "slow readers ", "reaches ", "links ", "lost "),
    )
    return streams.table("", columns, map(_row, page.gateways))


def _row(row: CommandRow) -> tuple[str, ...]:
    numbers = row.facts
    if numbers is None:
        return _name(row), row.state, printable(row.text)
    return (
        *(_name(row), row.state, printable(numbers.version), f"{numbers.uptime_s:,.0f} s"),
        *(f"{numbers.connections:,}", f"{numbers.subscriptions:,}", short(numbers.messages_in)),
        *(rate(numbers.message_rate), f"{numbers.slow_readers:,}", f"{numbers.nodes:,}"),
        *(f"{numbers.links:,}", short(numbers.lost)),
    )


def _name(row: CommandRow) -> str:
    region = f" ({printable(row.region)})" if row.region else ""
    return f"{printable(row.name)}{region}"
