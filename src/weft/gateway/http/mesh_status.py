"""Mesh counters of one service of a gateway."""

import msgspec


class MeshStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Links of the service, and traffic over them since it started."""

    # Public key of this gateway, for the rosters of others; and the address that they dial.
    key: str
    address: str
    # Reachable other gateways, and how many of them are linked.
    nodes: int
    links: int
    # Frames sent to other gateways, received from them, forwarded for others, retransmitted.
    sent: int
    received: int
    passed_on: int
    resent: int
    # Frames not sent because a link was full (repaired later), frames reported as lost, gaps.
    shed: int
    lost: int
    gaps: int
    # By error name.
    refused: dict[str, int]
    # Refused links, by error name.
    not_linked: dict[str, int] = {}
