"""The mesh in numbers, as one service of a gateway sees it."""

import msgspec


class MeshStatus(msgspec.Struct, frozen=True, kw_only=True):
    """With whom the service is linked, and what went by its links since it started."""

    # The public key of this gateway, for the rosters of others; and what they dial.
    key: str
    address: str
    # Other gateways that can be reached, and those of them that are linked with.
    nodes: int
    links: int
    # Frames: sent to others, received from them, passed on for others, and sent again.
    sent: int
    received: int
    passed_on: int
    resent: int
    # Not sent because a link was full, which is made up for later; announced as lost; how often.
    shed: int
    lost: int
    gaps: int
    # By the name of what was wrong.
    refused: dict[str, int]
    # Gateways that were not linked with, by the name of the error.
    not_linked: dict[str, int] = {}
