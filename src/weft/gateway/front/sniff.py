"""Sniffing: classifies a connection by its first bytes; pure.

The bytes are peeked: the next owner reads all of them. Native frames, HTTP and TLS cannot be
mistaken for each other: the third and fourth byte of a CONNECT's size are zero, those of a method's
name or of a TLS record are not.
"""

import re

from weft.broker.handshake import SERVICE_NAME
from weft.errors import BadFrame, BadGreeting, FrameTooBig
from weft.wire.byteops import cut, u32_at
from weft.wire.frames import HEADER_BYTES, Kind

# Classifications: undecided, a whole CONNECT, an HTTP request for the front, a TLS handshake, HTTP
# with an undecided path, an HTTP request for a service, a whole LINK.
MORE = 0
GREETING = 1
REQUEST = 2
HANDSHAKE = 3
MORE_HTTP = 4
DOOR = 5
LINK = 6

# Bytes that distinguish the protocols.
FIRST_BYTES = 4

_MORE = MORE
_GREETING = GREETING
_LINK = LINK
_FIRST = FIRST_BYTES
_HEADER = HEADER_BYTES
_CONNECT = int(Kind.CONNECT)
_LINK_KIND = int(Kind.LINK)
_METHODS = {
    method[:FIRST_BYTES]
    for method in (
        *(b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"TRACE "),
        *(b"CONNECT ", b"PRI * HTTP/2.0"),
    )
}
_TLS_HANDSHAKE = 0x0316
# HTTP endpoints of a service, and the prefixes of requests that may be for one.
DOORS = (
    *("ws", "middleman", "tunnel", "events", "bayeux"),
    *("publish", "request", "stream", "ticket", "_echo"),
)
_DOOR = re.compile(
    rb"[A-Z]+ /([A-Za-z0-9-][A-Za-z0-9_-]{0,62})/(%s)[/? ]"
    % b"|".join(door.encode() for door in DOORS)
)
_MAY_BECOME_ONE = re.compile(rb"[A-Z]+(?: (?:/(?:[A-Za-z0-9_-]{1,63}(?:/[a-z_]*)?)?)?)?")


class Classification:
    """Classification of a connection; undecided until `needed` bytes have arrived in total."""

    def __init__(self, want: int, needed: int, service: str) -> None:
        self.want = want
        self.needed = needed
        self.service = service


_IS_REQUEST = Classification(REQUEST, 0, "")
_IS_HANDSHAKE = Classification(HANDSHAKE, 0, "")


def look(data: bytearray, length: int, limit_bytes: int) -> Classification:
    """Classify a connection by the bytes sent so far: the first `length` of a buffer.

    Raises:
        BadFrame: Invalid frame size; FrameTooBig if it is over the limit.
        BadGreeting: The first frame is not a CONNECT or LINK that names a service.
    """
    if length > len(data):
        raise ValueError(f"{length} bytes are not in a buffer of {len(data)}")
    if length < _FIRST:
        return Classification(_MORE, _FIRST, "")
    if cut(data, 0, _FIRST) in _METHODS:
        return _request(data, length, limit_bytes)
    size = u32_at(data, 0)
    # A CONNECT of 790 bytes begins like a handshake, too, but for its third and fourth byte.
    if size & 0xFFFF == _TLS_HANDSHAKE and size > 0xFFFF:
        return _IS_HANDSHAKE
    if size < _HEADER:
        raise BadFrame(f"frame size of {size} bytes is under the header's {_HEADER}")
    if size > limit_bytes:
        raise FrameTooBig(f"greeting of {size} bytes is over the limit of {limit_bytes}")
    if length < size:
        return Classification(_MORE, size, "")
    service = _service_in(data, size)
    return Classification(_LINK if data[4] == _LINK_KIND else _GREETING, size, service)


def _request(data: bytearray, length: int, limit_bytes: int) -> Classification:
    """Classify a request: for a service, for the front, or undecided."""
    found = _DOOR.match(data, 0, length)
    if found is not None:
        return Classification(DOOR, 0, found[1].decode())
    if length < limit_bytes and _MAY_BECOME_ONE.fullmatch(data, 0, length):
        return Classification(MORE_HTTP, length + 1, "")
    return _IS_REQUEST


def _service_in(data: bytearray, size: int) -> str:
    """Return the service that a whole first frame names."""
    if data[4] not in (_CONNECT, _LINK_KIND):
        raise BadGreeting(f"the first frame is of kind {data[4]}, not CONNECT")
    names = data[6] + data[7]
    if names > size - _HEADER:
        raise BadFrame(f"subject and reply of {names} bytes exceed a frame of {size}")
    name = cut(data, _HEADER, _HEADER + data[6])
    if not SERVICE_NAME.fullmatch(name):
        # The bytes are not repeated: they may be anything.
        raise BadGreeting(
            "a service name has 1 to 63 letters, digits, '-' and '_', unlike these"
            f" {len(name)} bytes"
        )
    return name.decode()
