"""A gateway in numbers, as /status and `Gateway.status()` show it."""

from typing import Literal

import msgspec

from weft.gateway.http.service_status import ServiceStatus

State = Literal["up", "starting", "silent", "draining"]


class FrontReport(msgspec.Struct, frozen=True, kw_only=True):
    """What came to the port since the start, and what waits there now."""

    accepted: int
    pending: int
    pending_max: int
    # How often accepting had to pause because descriptors ran out.
    pauses: int
    # Requests answered, and connections that speak TLS now.
    http: int
    encrypted: int
    # By the error's name, or "left".
    refused: dict[str, int]


class ServiceReport(msgspec.Struct, frozen=True, kw_only=True):
    """One service and its worker; `status` is what the worker says, None if it does not."""

    state: State
    pid: int | None
    restarts: int
    handed_over: int
    status: ServiceStatus | None
    # How often its worker was killed because it made no turns.
    hangs: int = 0


class GatewayReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a gateway tells about itself."""

    gateway: str
    address: str
    version: str
    uptime_s: float
    state: Literal["ready", "starting", "draining"]
    connections: int
    connections_max: int
    # How many keys there are; 0: there are none, and everyone is trusted. And what is wrong with
    # their file at the moment.
    keys: int = 0
    keys_problem: str = ""
    # The services that have a journal here, whether they run or not.
    journals: tuple[str, ...] = ()
    front: FrontReport
    services: dict[str, ServiceReport]
