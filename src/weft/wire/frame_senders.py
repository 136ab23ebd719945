"""Origin, publisher and reply subjects of whole frames; compiled, because it runs per frame."""

from weft.wire.byteops import cut, same_bytes
from weft.wire.frames import HEADER_BYTES

# Offset of the number of the origin gateway, then that of the publishing connection.
_IDENTITY = 8
IDENTITY_BYTES = 8

_LENGTH = IDENTITY_BYTES
_HEADER = HEADER_BYTES


def all_from(frames: list[bytes], identity: bytes) -> bool:
    """Return whether all frames have this origin and publisher."""
    if len(identity) != _LENGTH:
        raise ValueError(f"an identity of {len(identity)} bytes is not one of {_LENGTH}")
    for frame in frames:  # noqa: SIM110  # Cython does not compile all() to a loop
        if not same_bytes(frame, _IDENTITY, identity, 0, _LENGTH):
            return False
    return True


def replies_in(frames: list[bytes]) -> list[bytes]:
    """Return the reply subjects of the frames that have one."""
    found: list[bytes] = []
    for frame in frames:
        length = frame[7]
        if length != 0:
            start = _HEADER + frame[6]
            found.append(cut(frame, start, start + length))
    return found
