"""`weft status`: a gateway, its services, and the connections and subscriptions of one service."""

import click

from weft.cli.options.help_text import examples
from weft.cli.options.target import CommandTarget, target_options
from weft.cli.output import status_tables, streams
from weft.cli.output.message_text import printable, to_json
from weft.cli.output.units import duration
from weft.cli.query import (
    ALL,
    Answer,
    ConnectionRow,
    GatewayPage,
    ask,
    ask_others,
    check_service,
    read,
)
from weft.errors import NotKnown, shortened


@click.command(
    epilog=examples(
        "weft status",
        "weft status --connection me.1",
        "weft status --subject sensors.paris.temp --json",
    )
)
@click.option("--connection", metavar="NAME", help="Show the subscriptions of this connection.")
@click.option("--subject", metavar="SUBJECT", help="Show the subscribers of this subject.")
@target_options
def status(target: CommandTarget, connection: str | None, subject: str | None) -> None:
    """Show a gateway, its services and connections."""
    if connection is not None and subject is not None:
        raise click.UsageError("ask for a --connection or for a --subject, not for both")
    if connection is not None:
        _show_subscriptions(target, connection)
    elif subject is not None:
        _show_subscribers(target, subject)
    else:
        _show_gateway(target)


def _show_gateway(target: CommandTarget) -> None:
    answer = check_service(target)
    page = read(answer, GatewayPage)
    there: Answer = {"connections": [], "more": 0}
    # A query does not start a service, not even the default one.
    if target.service in page.services:
        with target.open() as connection:
            there = ask_others(connection)
    listed, more = there["connections"], there["more"]
    if target.is_json:
        values = {"service": target.service, "connection_list": listed, "more": more}
        streams.json_result(to_json({**answer, **values}))
        return
    streams.show(
        f"gateway {printable(page.gateway)} at {target.gateway}, {printable(page.state)},"
        f" Weft {printable(page.version)}, up {duration(page.uptime_s)}",
        "",
        status_tables.services(page.services) if page.services else "no service runs yet",
        "",
        status_tables.connections(
            f"connections of {target.service}", read(listed, list[ConnectionRow])
        )
        if listed
        else f"no connections to {target.service}",
    )
    _tell_more(there)


def _tell_more(answer: Answer) -> None:
    if answer.get("more"):
        streams.news(f"{answer['more']:,} more are not shown")


def _show_subscriptions(target: CommandTarget, connection_name: str) -> None:
    about: Answer = (
        {"connection": int(connection_name)}
        if connection_name.isdecimal()
        else {"name": connection_name}
    )
    check_service(target)
    with target.open() as connection:
        if not ask(connection, "connections", {**about, "limit": 1})["connections"]:
            raise NotKnown(f"no connection {shortened(connection_name)}")
        answer = ask(connection, "subscriptions", {**about, **ALL})
    columns = ("connection ", "name", "pattern", "group", "policy")
    _show_list(target, answer, f"subscriptions of {printable(connection_name)}", columns)


def _show_subscribers(target: CommandTarget, subject: str) -> None:
    check_service(target)
    with target.open() as connection:
        answer = ask(connection, "subscribers", {"subject": subject, **ALL})
    columns = ("connection ", "name", "group")
    _show_list(target, answer, f"subscribers of {printable(subject)}", columns)


def _show_list(target: CommandTarget, answer: Answer, title: str, columns: tuple[str, ...]) -> None:
    if target.is_json:
        streams.json_result(to_json(answer))
        return
    rows = read(answer[title.partition(" ")[0]], list[dict[str, object]])
    streams.show(
        streams.table(
            title,
            columns,
            ([printable(str(row.get(key.strip(), ""))) for key in columns] for row in rows),
        )
    )
    _tell_more(answer)
