"""What a gateway says of its mesh, in the shape that `weft mesh` and `weft trace` show."""

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
    """A link of the gateway that was asked."""

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
    """An address that could not be linked with."""

    address: str = ""
    problem: str = ""
    is_configured: bool = False
    is_registry: bool = False
    is_dialling: bool = False
    next_s: float = 0.0


class WantedRow(msgspec.Struct, frozen=True):
    """Something that a gateway wants."""

    gateway: str = ""
    pattern: str = ""
    group: str = ""
    listen_only: bool = False


class MeshPage(msgspec.Struct, frozen=True):
    """Everything about a mesh."""

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
    """A subscription that a subject leads to."""

    name: str = ""
    connection: int = 0
    pattern: str = ""
    group: str = ""
    policy: str = ""
    listen_only: bool = False
    is_behind: bool = False
    is_next: bool = False


class WantingRow(msgspec.Struct, frozen=True):
    """A gateway that wants a subject, and by which pattern."""

    name: str = ""
    pattern: str = ""
    group: str = ""
    listen_only: bool = False
    hops: int = 0


class ListenersPage(msgspec.Struct, frozen=True):
    """Who listens to a subject."""

    gateway: str
    subject: str
    listeners: list[SubscriptionRow] = []
    gateways: list[WantingRow] = []
    more: int = 0
    more_gateways: int = 0


class OnwardRow(msgspec.Struct, frozen=True):
    """A gateway that something was passed on to, or was not for a reason."""

    name: str = ""
    number: int = 0
    rtt_ms: float = 0.0
    waiting_bytes: int = 0
    reason: str = ""
    text: str = ""


class PlaceRow(msgspec.Struct, frozen=True):
    """What is known of a trace at one gateway."""

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
    """A group, and who gets its next message."""

    group: str = ""
    gateway: str = ""
    name: str = ""


class ResponderRow(msgspec.Struct, frozen=True):
    """Who would be given a request; nobody if there is no gateway."""

    gateway: str = ""
    name: str = ""


class TracePage(msgspec.Struct, frozen=True):
    """A trace; the gateways in the order in which they are reached."""

    subject: str
    gateway: str
    responder: ResponderRow
    is_heard: bool = False
    gateways: list[PlaceRow] = []
    groups: list[ShareRow] = []
    more: int = 0
