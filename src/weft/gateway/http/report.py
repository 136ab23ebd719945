"""Status report of a gateway, as in /status and `Gateway.status()`."""

from typing import Literal

import msgspec

from weft.gateway.http.service_status import ServiceStatus

State = Literal["up", "starting", "silent", "draining"]


class FrontReport(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of the port since the start, and its pending connections."""

    accepted: int
    pending: int
    pending_max: int
    # Number of times that accepting paused because file descriptors ran out.
    pauses: int
    # HTTP requests answered, and current TLS connections.
    http: int
    encrypted: int
    # By the error's name, or "left".
    refused: dict[str, int]


class ServiceReport(msgspec.Struct, frozen=True, kw_only=True):
    """One service and its worker; `status` is the worker's report, None without one."""

    state: State
    pid: int | None
    restarts: int
    handed_over: int
    status: ServiceStatus | None
    # Times that its worker was killed because its event loop made no turns.
    hangs: int = 0


class GatewayReport(msgspec.Struct, frozen=True, kw_only=True):
    """Status of a gateway, its front and its services."""

    gateway: str
    address: str
    version: str
    uptime_s: float
    state: Literal["ready", "starting", "draining"]
    connections: int
    connections_max: int
    # Number of keys (0: no keys, every client is trusted), and the current problem of the key
    # file.
    keys: int = 0
    keys_problem: str = ""
    # Services that have a journal here, running or not.
    journals: tuple[str, ...] = ()
    front: FrontReport
    services: dict[str, ServiceReport]
