"""Status report of a service, sent from its worker to the front."""

import msgspec

from weft.gateway.http.mesh_status import MeshStatus


class JournalStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Status of a service's journal."""

    # Position of the next message; messages before `safe` are as durable as the settings require.
    position: int
    safe: int
    # Messages that were not stored, and the current problem.
    missed: int
    problem: str


class ServiceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of a service since it started, and its current state."""

    service: str
    connections: int
    subscriptions: int
    messages_in: int
    bytes_in: int
    deliveries: int
    bytes_out: int
    # Recently published, per second.
    message_rate: float
    byte_rate: float
    # Messages dropped, by reason; frames refused and connections ended, by error name.
    dropped: dict[str, int]
    refused: dict[str, int]
    ended: dict[str, int]
    slow_readers: int
    backlog_bytes: int
    arena_bytes: int
    uptime_s: float
    # Channels that have members here, and all channels of the mesh.
    channels_here: int = 0
    channels: int = 0
    # Lanes between clients, routes that use them, and moves of routes to lanes and back.
    lanes: int = 0
    routes_direct: int = 0
    promotions: int = 0
    demotions: dict[str, int] = {}
    journal: JournalStatus | None = None
    mesh: MeshStatus | None = None
