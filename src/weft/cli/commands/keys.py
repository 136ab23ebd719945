"""`weft keys`: create, list, revoke and rotate the keys of a gateway."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
import msgspec

from weft.broker.auth.keys import ANY_SERVICE, ROLES, Grant, KeyRecord
from weft.broker.auth.permissions import RIGHTS
from weft.cli.options.help_text import examples
from weft.cli.output import streams
from weft.cli.output.message_text import printable, to_json
from weft.errors import BadOption, shortened
from weft.gateway.keys.key_file import path_of, read_keys
from weft.gateway.keys.manage import (
    MadeKey,
    is_usable,
    make_key,
    new_record,
    revoke_keys,
    rotate_key,
)

_SPAN = re.compile(r"(?P<count>\d{1,9})(?P<unit>[smhdw])")
_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
SPAN_MAX_DAYS = 36_525

Command = Callable[..., Any]

_DATA = click.option(
    "--data",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="The data folder of the gateway (--data).",
)
_JSON = click.option("--json", "is_json", is_flag=True, help="Print JSON, one object a line.")


@click.group()
def keys() -> None:
    """Create, list, revoke and rotate the keys of a gateway.

    A running gateway applies changes within seconds. Once there is a key, all clients need one.
    """


def span(option: str, text: str) -> timedelta:
    """Return the duration in a text: 90s, 5m, 12h, 30d, 8w.

    Raises:
        BadOption: Invalid or too long.
    """
    found = _SPAN.fullmatch(text)
    if found is None:
        raise BadOption(f"{option} {shortened(text)} is not a time such as 90s, 5m, 12h or 30d")
    seconds = int(found["count"]) * _UNIT_S[found["unit"]]
    if seconds > SPAN_MAX_DAYS * _UNIT_S["d"]:
        raise BadOption(f"{option} {text} is over the limit of {SPAN_MAX_DAYS}d")
    return timedelta(seconds=seconds)


@keys.command(
    epilog=examples(
        "weft keys new --role admin --name ops --data /var/lib/weft",
        "weft keys new --role service --name quotes --service market --data /var/lib/weft",
        "weft keys new --role client --name desk --allow 'subscribe:quotes.>' --expires 30d"
        " --data /var/lib/weft",
    )
)
@click.option("--role", required=True, metavar="ROLE", help="service, client or admin.")
@click.option("--name", required=True, metavar="NAME", help="Name of the key.")
@click.option(
    "--service",
    metavar="NAME",
    help="The service that the key opens (default: all, as '*').",
)
@click.option(
    "--allow",
    metavar="RIGHT:PATTERN",
    multiple=True,
    help=f"Allow this: {', '.join(RIGHTS)}. May be repeated.",
)
@click.option(
    "--deny",
    metavar="RIGHT:PATTERN",
    multiple=True,
    help="Deny this, even if it is allowed elsewhere. May be repeated.",
)
@click.option("--expires", metavar="TIME", help="Lifetime, such as 12h or 30d (default: no end).")
@_DATA
@_JSON
def new(data: Path, is_json: bool, **options: Any) -> None:
    """Create a key, and print its text as the last line, this once only."""
    wanted = new_record(
        options["name"],
        _checked("role", options["role"], ROLES),
        options["service"] or ANY_SERVICE,
    )
    rights = _rights(options["allow"], options["deny"])
    expires = None
    if options["expires"] is not None:
        expires = datetime.now(UTC) + span("--expires", options["expires"])
    wanted = msgspec.structs.replace(wanted, rights=rights, expires=expires)
    _give_out(make_key(data, wanted), is_json)


@keys.command("list", epilog=examples("weft keys list --data /var/lib/weft"))
@_DATA
@_JSON
def list_keys(data: Path, is_json: bool) -> None:
    """List the keys, without their texts."""
    now = datetime.now(UTC)
    records = read_keys(path_of(data))
    if is_json:
        for each in records:
            streams.json_result(to_json(_facts(each, now)))
        return
    if not records:
        streams.result("there are no keys: every client on this machine is trusted")
        return
    columns = ("id", "name", "role", "service", "state", "made", "rights")
    streams.show(streams.table("keys", columns, (_row(each, now) for each in records)))


@keys.command(epilog=examples("weft keys revoke quotes --data /var/lib/weft"))
@click.argument("which", metavar="ID|NAME")
@_DATA
@_JSON
def revoke(which: str, data: Path, is_json: bool) -> None:
    """Revoke a key: its connections are closed within seconds."""
    for each in revoke_keys(data, which):
        if is_json:
            streams.json_result(to_json(_facts(each, datetime.now(UTC))))
        else:
            streams.result(f"revoked {each.id} {printable(each.name)}")


@keys.command(epilog=examples("weft keys rotate quotes --overlap 1h --data /var/lib/weft"))
@click.argument("which", metavar="ID|NAME")
@click.option(
    "--overlap",
    metavar="TIME",
    default="1h",
    show_default=True,
    help="Time for which the old key stays valid; 0s ends it at once.",
)
@_DATA
@_JSON
def rotate(which: str, overlap: str, data: Path, is_json: bool) -> None:
    """Create a key with the same rights, printed as the last line; the old one expires."""
    made, old = rotate_key(data, which, span("--overlap", overlap))
    if old.expires is not None:
        streams.news(f"key {old.id} expires at {_moment(old.expires)}")
    _give_out(made, is_json)


def _give_out(made: MadeKey, is_json: bool) -> None:
    record = made.record
    if is_json:
        streams.json_result(to_json({**_facts(record, record.made), "key": made.text}))
        return
    if record.verifies:
        streams.news(f"public key of its commands, for mesh.admins elsewhere: {record.verifies}")
    streams.news(
        f"key {record.id} for {printable(record.name)}, role {record.role}, service"
        f" {record.service}; it is shown only this once:"
    )
    streams.result(made.text)


def _checked(what: str, name: str, known: Sequence[str]) -> str:
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise BadOption(f"{what} {shortened(name)} is none of {', '.join(known)}{hint}")
    return name


def _rights(allow: Sequence[str], deny: Sequence[str]) -> dict[str, Grant]:
    found: dict[str, dict[str, list[str]]] = {}
    for option, given in (("allow", allow), ("deny", deny)):
        for text in given:
            right, colon, pattern = text.partition(":")
            if not colon:
                raise BadOption(f"--{option} {shortened(text)} is not RIGHT:PATTERN")
            _checked("right", right, RIGHTS)
            found.setdefault(right, {}).setdefault(option, []).append(pattern)
    return {right: msgspec.convert(patterns, Grant) for right, patterns in found.items()}


def _state(record: KeyRecord, now: datetime) -> str:
    if record.revoked is not None:
        return f"revoked {_moment(record.revoked)}"
    if record.expires is None:
        return "in use"
    return f"{'expires' if is_usable(record, now) else 'expired'} {_moment(record.expires)}"


def _row(record: KeyRecord, now: datetime) -> tuple[str, ...]:
    rights = [
        f"{sign}{right}:{pattern}"
        for right, grant in record.rights.items()
        for sign, patterns in (("", grant.allow), ("-", grant.deny))
        for pattern in patterns
    ]
    return (
        *(record.id, printable(record.name), record.role, record.service, _state(record, now)),
        *(_moment(record.made), printable(" ".join(rights))),
    )


def _facts(record: KeyRecord, now: datetime) -> dict[str, Any]:
    facts: dict[str, Any] = msgspec.to_builtins(record)
    del facts["hash"]
    return {**facts, "usable": is_usable(record, now)}


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
