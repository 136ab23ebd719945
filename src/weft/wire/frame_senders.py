"""Who frames say that they come from, and where they await answers; compiled, as all look."""

from weft.wire.byteops import cut, same_bytes
from weft.wire.frames import HEADER_BYTES

# Where a frame says which gateway it entered at, and which connection sent it.
_IDENTITY = 8
IDENTITY_BYTES = 8

_LENGTH = IDENTITY_BYTES
_HEADER = HEADER_BYTES


def all_from(frames: list[bytes], identity: bytes) -> bool:
    """Say if whole frames all have this origin and publisher."""
    if len(identity) != _LENGTH:
        raise ValueError(f"an identity of {len(identity)} bytes is not one of {_LENGTH}")
    for frame in frames:  # noqa: SIM110  # what is made of all() is not compiled to a loop
        if not same_bytes(frame, _IDENTITY, identity, 0, _LENGTH):
            return False
    return True


def replies_in(frames: list[bytes]) -> list[bytes]:
    """The reply subjects of whole frames, of those that have one."""
    found: list[bytes] = []
    for frame in frames:
        length = frame[7]
        if length != 0:
            start = _HEADER + frame[6]
            found.append(cut(frame, start, start + length))
    return found
