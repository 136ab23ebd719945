"""Settings of a gateway: one immutable value, validated on construction.

Sizes are in bytes, times in seconds, as the names state; docs/operations.md explains every key.
"""

import ipaddress
import re
import socket
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from weft.broker.delivery.policy import OUTBOX_LIMIT_MIN_BYTES
from weft.broker.handshake import SERVICE_NAME
from weft.broker.limits import Limits
from weft.broker.service import BODY_MAX_BYTES
from weft.errors import BadOption, BadSubject, shortened
from weft.gateway.config.mesh_settings import (
    GREETING_LEAST_BYTES,
    MeshSettings,
    check_reachable,
    target_of,
    unguarded,
)
from weft.gateway.keys.key_file import path_of, read_keys
from weft.lanes.settings import LaneSettings, check_lanes
from weft.transports.http.origins import WebRules, WebSettings
from weft.transports.tunnel.formats import FormatSettings, formats_of
from weft.wire.frames import BODY_LIMIT_MAX_BYTES, HEADER_BYTES, NAME_MAX_BYTES
from weft.wire.subjects import CHANNEL, checked_pattern

LISTEN = "127.0.0.1:7411"
# Room for the header and both names; and the most bytes that the kernel holds back while we peek.
GREETING_MIN_BYTES = HEADER_BYTES + 2 * NAME_MAX_BYTES
GREETING_MAX_BYTES = 32 << 10

# Workers report once a second, but not while they read a large key file, for example.
WATCHDOG_MIN_S = 3.0
# Time without progress after which a drain stops waiting for a client.
DRAIN_STALL_S = 2.0

# Settings whose least value is above 0, or whose upper limit is lower than the general one.
_RANGES: dict[str, tuple[float, float]] = {
    "greeting_bytes": (GREETING_MIN_BYTES, GREETING_MAX_BYTES),
    "body_bytes": (1, BODY_MAX_BYTES),
    "outbox_bytes": (OUTBOX_LIMIT_MIN_BYTES, BODY_LIMIT_MAX_BYTES),
    "share": (0.001, 1),
    "outbox_age_s": (0.001, BODY_LIMIT_MAX_BYTES),
}

# 0 means unlimited or never; and sizes that may exceed memory.
_MAY_BE_0 = {"keep_bytes", "keep_s", "bayeux_interval_s", "watchdog_s", "idle_s"}
_MAY_BE_LARGE = {"keep_bytes", "keep_s", "staged_bytes", "kept_total_bytes", "backlogs_bytes"}
SIZE_MAX_BYTES = 1 << 60

_NAME = re.compile(r"[A-Za-z0-9._-]{1,63}\Z")


class SocketAddress(NamedTuple):
    """IP address and port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def family(self) -> socket.AddressFamily:
        """Return the address family of the IP address."""
        return socket.AF_INET6 if ":" in self.host else socket.AF_INET


class Tls(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Files of the certificate and its key; both or neither."""

    cert: str = ""
    key: str = ""

    @property
    def is_on(self) -> bool:
        """Return whether the port uses TLS."""
        return self.cert != ""


class Log(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Log level and format."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["text", "json"] = "text"


class JournalSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the journal stores, and how durably; see docs/journal.md."""

    patterns: tuple[str, ...] = ()
    # Messages published at this gateway, or also those from other gateways.
    scope: Literal["entered", "mesh"] = "entered"
    sync: Literal["ack", "interval", "none"] = "ack"
    sync_s: float = 0.005
    sync_bytes: int = 1 << 20
    interval_s: float = 1.0
    segment_bytes: int = 64 << 20
    segment_s: float = 300.0
    seal: Literal["parquet", "never"] = "parquet"
    # Whether the small sealed files of a day are merged.
    compact: Literal["days", "never"] = "days"
    # 0: unlimited.
    keep_bytes: int = 0
    keep_s: float = 0.0
    # Limit of rows that are staged and not committed.
    staged_bytes: int = 4 << 30


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings of a gateway.

    Raises:
        BadOption: Invalid value; the text names the key.
    """

    name: str = msgspec.field(default_factory=lambda: host_name(socket.gethostname()))
    listen: str = LISTEN
    data: str = ""
    # Empty: every valid name, each service started on the first connection to it.
    services: tuple[str, ...] = ()
    services_max: int = 16
    # Time after which an unused service is stopped; 0: never.
    idle_s: float = 300.0
    connections: int = 20_000
    pending: int = 4096
    drain_s: float = 10.0
    # Time without progress after which a drain stops waiting for a client.
    drain_stall_s: float = DRAIN_STALL_S
    # Time without a turn of its event loop after which a worker is replaced; 0: never.
    watchdog_s: float = 30.0
    look: Literal["auto", "never"] = "auto"
    tls: Tls = msgspec.field(default_factory=Tls)
    log: Log = msgspec.field(default_factory=Log)
    limits: Limits = msgspec.field(default_factory=Limits)
    journal: JournalSettings = msgspec.field(default_factory=JournalSettings)
    mesh: MeshSettings = msgspec.field(default_factory=MeshSettings)
    lanes: LaneSettings = msgspec.field(default_factory=LaneSettings)
    web: WebSettings = msgspec.field(default_factory=WebSettings)
    # Tunnel formats by the names that clients choose them by, beside the built-in ones.
    formats: dict[str, FormatSettings] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _NAME.match(self.name):
            raise BadOption(
                f"name {shortened(self.name)} is not 1 to 63 letters, digits, '-', '_' and '.'"
            )
        _check_loopback(parse_address(self.listen), self.data)
        for service in self.services:
            if not is_service(service):
                raise BadOption(f"services: {shortened(service)} is not a valid service name")
        if len(self.services) > self.services_max:
            raise BadOption(
                f"services has {len(self.services)} names, services_max allows {self.services_max}"
            )
        if (self.tls.cert == "") != (self.tls.key == ""):
            raise BadOption("tls.cert and tls.key must both be set: one of them is missing")
        if 0 < self.watchdog_s < WATCHDOG_MIN_S:
            raise BadOption(
                f"watchdog_s is {self.watchdog_s}; it must be 0, for never, or at least"
                f" {WATCHDOG_MIN_S}"
            )
        _check_ranges(self, "")
        _check_ranges(self.limits, "limits.")
        _check_ranges(self.journal, "journal.")
        _check_ranges(self.mesh, "mesh.")
        _check_ranges(self.web, "web.")
        _check_ranges(self.lanes, "lanes.")
        check_lanes(self.lanes)
        for rule in self.lanes.rules:
            if rule.service and not is_service(rule.service):
                name = shortened(rule.service)
                raise BadOption(f"lanes.rules: {name} is not a valid service name")
        formats_of(self.formats)
        _check_journal(self.journal, self.data)
        _check_limits(self.limits)
        _check_mesh(self)

    @property
    def address(self) -> SocketAddress:
        """Return the address to listen on."""
        return parse_address(self.listen)


def web_of(settings: Settings) -> WebRules:
    """Return the web settings, with the gateway's own addresses among its host names."""
    web = {name: getattr(settings.web, name) for name in settings.web.__struct_fields__}
    hosts = (*settings.web.hosts, settings.address.host)
    if settings.mesh.address:
        # Pages that look for the closest gateway are redirected there.
        hosts = (*hosts, target_of(settings.mesh.address).host)
    web["hosts"] = hosts
    return WebRules(**web, formats=settings.formats)


def is_service(name: str) -> bool:
    """Return whether a name is valid for a service."""
    return SERVICE_NAME.fullmatch(name.encode(errors="surrogatepass")) is not None


def parse_address(text: str) -> SocketAddress:
    """Return the address in a text: `127.0.0.1:7411`, `[::1]:7411`, `localhost:7411`.

    Raises:
        BadOption: Not an IP address and a port.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not port.isascii() or int(port) > 65_535:
        raise BadOption(f"listen {shortened(text)} is not HOST:PORT")
    if host == "localhost":
        host = "127.0.0.1"
    is_bracketed = host.startswith("[") and host.endswith("]")
    try:
        address = ipaddress.ip_address(host[1:-1] if is_bracketed else host)
    except ValueError as error:
        raise BadOption(f"listen {shortened(text)} has no IP address before the port") from error
    if (address.version == 6) != is_bracketed:
        raise BadOption(f"listen {shortened(text)}: an IPv6 address, and only that, is in brackets")
    return SocketAddress(str(address), int(port))


def is_loopback(host: str) -> bool:
    """Return whether an IP address, in brackets or not, is a loopback address."""
    address = ipaddress.ip_address(host.strip("[]"))
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback


def host_name(host: str) -> str:
    """Return a gateway name for a host name, which may have other characters or be too long."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", host)[:63] or "gateway"


def _check_loopback(address: SocketAddress, data: str) -> None:
    """Refuse to listen on other than loopback addresses without keys."""
    if is_loopback(address.host):
        return
    if data and read_keys(path_of(Path(data))):
        return
    where = f" in {path_of(Path(data))}" if data else ", nor a data folder that could hold them"
    raise BadOption(
        f"listen {address} is not a loopback address, and there are no keys{where}: without keys a"
        " gateway trusts every client, so it listens on loopback only; make one first:"
        f" weft keys new --role admin --name NAME --data {data or 'DIR'}"
    )


def _check_journal(journal: JournalSettings, data: str) -> None:
    for pattern in journal.patterns:
        try:
            checked = checked_pattern(pattern)
        except BadSubject as error:
            raise BadOption(f"journal.patterns: {error}") from error
        if checked.startswith(CHANNEL):
            raise BadOption(f"journal.patterns: {pattern!r}: channel messages are not journaled")
    if journal.patterns and not data:
        raise BadOption("a journal needs a data folder: set data, or give --data")


def _check_mesh(settings: Settings) -> None:
    mesh = settings.mesh
    address = settings.address
    check_reachable(mesh, address.host)
    if mesh.is_asked_for and settings.limits.greeting_bytes < GREETING_LEAST_BYTES:
        raise BadOption(
            f"limits.greeting_bytes is {settings.limits.greeting_bytes}; in a mesh it must be at"
            f" least {GREETING_LEAST_BYTES}"
        )
    if not (mesh.join or mesh.registry) or mesh.is_guarded:
        return
    if not is_loopback(address.host):
        raise unguarded(mesh, f"this gateway listens on {address}, which is not loopback")
    if settings.data and read_keys(path_of(Path(settings.data))):
        raise unguarded(mesh, f"this gateway has keys, in {path_of(Path(settings.data))}")


def _check_ranges(settings: msgspec.Struct, prefix: str) -> None:
    for name in settings.__struct_fields__:
        value = getattr(settings, name)
        most = BODY_LIMIT_MAX_BYTES
        if isinstance(value, bool) or (name in _MAY_BE_0 and value == 0):
            continue
        if name in _MAY_BE_LARGE:
            most = SIZE_MAX_BYTES
        # The comparison is false for NaN, too.
        if isinstance(value, int | float) and not 0 < value <= most:
            raise BadOption(f"{prefix}{name} is {value}; it must be more than 0 and at most {most}")


def _check_limits(limits: Limits) -> None:
    for name, (least, most) in _RANGES.items():
        value = getattr(limits, name)
        if not least <= value <= most:
            raise BadOption(f"limits.{name} is {value}; it must be {least} … {most}")
