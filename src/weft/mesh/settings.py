"""Mesh settings of an operator."""

import msgspec

from weft.mesh.links.link import OUTBOX_BYTES


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """Bootstrap addresses and limits."""

    join: tuple[str, ...] = ()
    registries: tuple[str, ...] = ()
    max_links: int = 8
    is_relay: bool = True
    region: str = ""
    # How long an unreachable gateway is remembered.
    forget_s: float = 60.0
    outbox_bytes: int = OUTBOX_BYTES
