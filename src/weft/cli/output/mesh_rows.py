"""Rows of `weft mesh` and `weft trace`, as in a gateway's answers."""

import msgspec


class NodeRow(msgspec.Struct, frozen=True):
    """A gateway of the mesh."""

    name: str = ""
    number: int = 0
    address: str = ""
    region: str = ""
    state: str = ""
    hops: int = 0
    through: str = ""
    by: str = ""
    lost_s: float = 0.0
    patterns: int = 0
    is_current: bool = True
    is_coarse: bool = False
    links: list[str] = []
    room: int = 0
    load: int = 0
    is_draining: bool = False


class LinkRow(msgspec.Struct, frozen=True):
    """A link of the queried gateway."""

    name: str = ""
    address: str = ""
    is_dialled: bool = False
    is_registration: bool = False
    state: str = ""
    since_s: float = 0.0
    rtt_ms: float = 0.0
    waiting_bytes: int = 0
    limit_bytes: int = 0


class TargetRow(msgspec.Struct, frozen=True):
    """An address that cannot be linked."""

    address: str = ""
    problem: str = ""
    is_configured: bool = False
    is_registry: bool = False
    is_dialling: bool = False
    next_s: float = 0.0


class WantedRow(msgspec.Struct, frozen=True):
    """A subscription of a gateway, as in the interest set."""

    gateway: str = ""
    pattern: str = ""
    group: str = ""
    listen_only: bool = False


class MeshPage(msgspec.Struct, frozen=True):
    """Answer about a mesh."""

    gateway: str
    is_mesh: bool = False
    nodes: list[NodeRow] = []
    links: list[LinkRow] = []
    targets: list[TargetRow] = []
    interest: list[WantedRow] = []
    counts: dict[str, int | dict[str, int]] = {}
    not_linked: dict[str, int] = {}
    more_nodes: int = 0
    more_links: int = 0
    more_targets: int = 0
    more_interest: int = 0


class SubscriptionRow(msgspec.Struct, frozen=True):
    """A subscription that matches a subject."""

    name: str = ""
    connection: int = 0
    pattern: str = ""
    group: str = ""
    policy: str = ""
    listen_only: bool = False
    is_behind: bool = False
    is_next: bool = False


class WantingRow(msgspec.Struct, frozen=True):
    """A gateway with a matching subscription, and its pattern."""

    name: str = ""
    pattern: str = ""
    group: str = ""
    listen_only: bool = False
    hops: int = 0


class ListenersPage(msgspec.Struct, frozen=True):
    """Subscribers of a subject."""

    gateway: str
    subject: str
    listeners: list[SubscriptionRow] = []
    gateways: list[WantingRow] = []
    more: int = 0
    more_gateways: int = 0


class OnwardRow(msgspec.Struct, frozen=True):
    """A gateway that a message is forwarded to, or dropped for, with the reason."""

    name: str = ""
    number: int = 0
    rtt_ms: float = 0.0
    waiting_bytes: int = 0
    reason: str = ""
    text: str = ""


class TraceGatewayRow(msgspec.Struct, frozen=True):
    """Trace at one gateway."""

    name: str = ""
    number: int = 0
    by: str = ""
    path: list[str] = []
    state: str = ""
    text: str = ""
    is_wanted: bool = False
    is_kept: bool = False
    subscriptions: list[SubscriptionRow] = []
    more: int = 0
    onward: list[OnwardRow] = []
    drops: list[OnwardRow] = []


class ShareRow(msgspec.Struct, frozen=True):
    """A queue group, and the member that gets its next message."""

    group: str = ""
    gateway: str = ""
    name: str = ""


class ResponderRow(msgspec.Struct, frozen=True):
    """Responder of the next request; empty without one."""

    gateway: str = ""
    name: str = ""


class TracePage(msgspec.Struct, frozen=True):
    """A trace; the gateways in the order in which they are reached."""

    subject: str
    gateway: str
    responder: ResponderRow
    is_heard: bool = False
    gateways: list[TraceGatewayRow] = []
    groups: list[ShareRow] = []
    more: int = 0
