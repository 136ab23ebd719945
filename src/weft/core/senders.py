"""Who frames say that they come from; compiled, because it is looked at in every one of them."""

from weft.core.words import same_bytes

# Where a frame says which gateway it entered at, and which connection sent it.
_IDENTITY = 8
IDENTITY_BYTES = 8

_LENGTH = IDENTITY_BYTES


def all_from(frames: list[bytes], identity: bytes) -> bool:
    """Say if whole frames all have this origin and publisher."""
    if len(identity) != _LENGTH:
        raise ValueError(f"an identity of {len(identity)} bytes is not one of {_LENGTH}")
    for frame in frames:  # noqa: SIM110  # what is made of all() is not compiled to a loop
        if not same_bytes(frame, _IDENTITY, identity, 0, _LENGTH):
            return False
    return True
