"""What an operator chose for a mesh."""

import msgspec

from weft.mesh.links.link import OUTBOX_BYTES


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """Addresses to begin with, and bounds."""

    join: tuple[str, ...] = ()
    registries: tuple[str, ...] = ()
    max_links: int = 8
    is_relay: bool = True
    region: str = ""
    # For how long a gateway without a way to it is counted for.
    forget_s: float = 60.0
    outbox_bytes: int = OUTBOX_BYTES
