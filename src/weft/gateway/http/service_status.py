"""A service in numbers, as a worker tells its front."""

import msgspec

from weft.gateway.http.mesh_status import MeshStatus


class JournalStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The journal of a service."""

    # Of the next message; everything before `safe` is as safe as the settings ask for.
    position: int
    safe: int
    # Messages that could not be kept, and what is wrong at the moment.
    missed: int
    problem: str


class ServiceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a service did since it started, and what it holds now."""

    service: str
    connections: int
    subscriptions: int
    messages_in: int
    bytes_in: int
    deliveries: int
    bytes_out: int
    # Published lately, each second.
    message_rate: float
    byte_rate: float
    # Messages dropped by reason; frames refused and connections ended by the error's name.
    dropped: dict[str, int]
    refused: dict[str, int]
    ended: dict[str, int]
    slow_readers: int
    backlog_bytes: int
    arena_bytes: int
    uptime_s: float
    # Channels that have members here, and all that are known of the mesh.
    channels_here: int = 0
    channels: int = 0
    # Lanes between clients, routes that go by them, and how often routes came to them and back.
    lanes: int = 0
    routes_direct: int = 0
    promotions: int = 0
    demotions: dict[str, int] = {}
    journal: JournalStatus | None = None
    mesh: MeshStatus | None = None
