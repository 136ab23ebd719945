"""Queries to a gateway: over HTTP for all its services, by system request within one.

Answers are kept unchanged for JSON; tables read them with defaults for fields that an older gateway
does not send.
"""

import http
import http.client
import json
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from weft import Connection
from weft.cli.options.target import DEFAULT_SERVICE, KEY_VARIABLE, CommandTarget
from weft.cli.output.message_text import printable
from weft.cli.query_errors import place, sentence_about
from weft.client.connection.http_get import problem_in
from weft.errors import (
    BadKey,
    NoSuchService,
    NotAllowed,
    ProtocolError,
    Unreachable,
    WeftError,
    shortened,
)
from weft.wire.address import Address, addresses_from

TIMEOUT_S = 5.0
STATUS_MAX_BYTES = 16 << 20
# Most rows that a gateway sends in one answer, so that the busiest are among them.
ALL = {"limit": 1000}
_REFUSALS: dict[int, type[WeftError]] = {401: BadKey, 403: NotAllowed}

Answer = dict[str, Any]
Shape = TypeVar("Shape")


class ServiceTotals(msgspec.Struct, frozen=True):
    """Columns of a service in a table."""

    connections: int = 0
    subscriptions: int = 0
    messages_in: int = 0
    message_rate: float = 0.0
    byte_rate: float = 0.0
    # By reason.
    dropped: dict[str, int] = {}
    slow_readers: int = 0
    backlog_bytes: int = 0


class ServiceRow(msgspec.Struct, frozen=True):
    """A service and its worker; no totals if the worker does not answer."""

    state: str = ""
    pid: int | None = None
    restarts: int = 0
    status: ServiceTotals | None = None


class GatewayPage(msgspec.Struct, frozen=True):
    """A gateway and its services by name."""

    gateway: str
    services: dict[str, ServiceRow]
    # Services that have a journal, running or not.
    journals: tuple[str, ...] = ()
    version: str = ""
    state: str = ""
    uptime_s: float = 0.0


class ConnectionRow(msgspec.Struct, frozen=True):
    """Columns of a connection in a table."""

    number: int = 0
    name: str = ""
    address: str = ""
    client: str = ""
    subscriptions: int = 0
    messages: int = 0
    message_rate: float = 0.0
    byte_rate: float = 0.0
    owed_bytes: int = 0
    dropped: int = 0
    is_behind: bool = False


class SubjectRow(msgspec.Struct, frozen=True):
    """Traffic of one subject."""

    subject: str = ""
    messages: int = 0
    bytes: int = 0
    message_rate: float = 0.0
    byte_rate: float = 0.0


class FlowRow(SubjectRow, frozen=True):
    """Traffic of one connection to one subject."""

    connection: int = 0
    name: str = ""


def ask(connection: Connection, what: str, about: Mapping[str, Any] | None = None) -> Answer:
    """Return the gateway's answer to `_WEFT.ask.<what>`, as plain values."""
    answer = connection.send_request(f"_WEFT.ask.{what}", about or {}, timeout=TIMEOUT_S)
    values: Answer = json.loads(answer.to_json())
    return values


def ask_others(connection: Connection) -> Answer:
    """Return the gateway's list of connections without this one, which only queries."""
    answer = ask(connection, "connections", ALL)
    rows, more = answer["connections"], answer["more"]
    # Other connections may have the same name, but they are older.
    own = max((row for row in rows if row["name"] == connection.name), key=_number, default=None)
    if own is None:
        return {"connections": rows, "more": max(more - 1, 0)}
    return {"connections": [row for row in rows if row is not own], "more": more}


def read(answer: object, kind: type[Shape]) -> Shape:
    """Convert an answer, or a part of one, to the type of a table's rows.

    Raises:
        ProtocolError: The answer has another structure.
    """
    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError as error:
        raise ProtocolError(f"the gateway's answer cannot be read: {error}") from error


def check_service(target: CommandTarget) -> Answer:
    """Check that the service runs: connecting to another one would start it.

    The default service is accepted, too: every client may start it. Returns the page `/status`.

    Raises:
        NoSuchService: The gateway does not run the service.
        Unreachable: No answer, or not a Weft gateway.
    """
    answer = fetch_status(target)
    services = read(answer, GatewayPage).services
    if target.service not in {*services, DEFAULT_SERVICE}:
        running = ", ".join(map(printable, services)) or "none"
        raise NoSuchService(
            f"{target.gateway} does not run a service {shortened(target.service)}, only {running}"
        )
    return answer


def fetch_status(target: CommandTarget) -> Answer:
    """Return the gateway's page `/status`, about all its services.

    Raises:
        BadKey: The gateway has keys, and does not accept ours.
        NotAllowed: Our key may not read the page.
        Unreachable: No answer, or not a Weft gateway.
    """
    address = addresses_from(target.gateway)[0]
    # Outside the try block: an unreadable key file is not an error of the gateway.
    headers = _headers(target)
    http_connection = _http(address, target)
    try:
        http_connection.request("GET", "/status", headers=headers)
        response = http_connection.getresponse()
        body = response.read(STATUS_MAX_BYTES)
        if response.status == http.HTTPStatus.UNAUTHORIZED and not target.key():
            raise BadKey(f"a key is needed: --key-file FILE, or {KEY_VARIABLE}")
        if response.status in _REFUSALS:
            raise _REFUSALS[response.status](problem_in(body))
        if response.status != http.HTTPStatus.OK:
            raise Unreachable(f"{place(address)} answers /status with {response.status}")
        values = json.loads(body)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unreachable(sentence_about(address, error)) from error
    finally:
        http_connection.close()
    if not isinstance(values, dict):
        raise Unreachable(f"{place(address)} is not a Weft gateway")
    return values


def _headers(target: CommandTarget) -> dict[str, str]:
    headers = {"Accept": "application/json"}
    if key := target.key():
        headers["Authorization"] = f"Bearer {key}"
    return headers


def _number(row: Answer) -> int:
    number: int = row["number"]
    return number


def _http(address: Address, target: CommandTarget) -> http.client.HTTPConnection:
    if not address.is_tls:
        return http.client.HTTPConnection(address.host, address.port, timeout=TIMEOUT_S)
    return http.client.HTTPSConnection(
        address.host, address.port, timeout=TIMEOUT_S, context=target.tls()
    )
