"""What the first bytes of a connection say about where it belongs; pure.

The bytes are looked at, not taken: whoever gets the connection reads them all. Native frames, HTTP
and TLS cannot be mistaken for each other: the third and fourth byte of a greeting's size are zero,
those of a method's name or of a TLS record are not.
"""

from dataclasses import dataclass

from weft.core.frames import HEADER_BYTES, Kind
from weft.core.greeting import SERVICE_NAME
from weft.core.words import u32_at
from weft.errors import BadFrame, BadGreeting, FrameTooBig

# Enough to tell the ways to speak apart.
FIRST_BYTES = 4

_METHODS = {
    method[:FIRST_BYTES]
    for method in (
        *(b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"TRACE "),
        *(b"CONNECT ", b"PRI * HTTP/2.0"),
    )
}
_TLS_HANDSHAKE = b"\x16\x03"
# A greeting of 790 bytes begins like a handshake, too, but for its third byte and the fourth.
_FRAME_END = b"\0\0"


@dataclass(frozen=True, slots=True)
class More:
    """Nothing can be said before so many bytes have come in all."""

    needed: int


@dataclass(frozen=True, slots=True)
class Greeting:
    """A whole CONNECT for this service."""

    service: str


@dataclass(frozen=True, slots=True)
class Request:
    """The beginning of an HTTP request."""


@dataclass(frozen=True, slots=True)
class Handshake:
    """The beginning of a TLS handshake."""


Verdict = More | Greeting | Request | Handshake


def look(data: bytes, limit_bytes: int) -> Verdict:
    """Say what a connection wants from what it has sent so far.

    Raises:
        BadFrame: it sent a size that no frame has; FrameTooBig if it is over the limit.
        BadGreeting: it sent a frame, but not one that names a service.
    """
    if len(data) < FIRST_BYTES:
        return More(FIRST_BYTES)
    if data[:FIRST_BYTES] in _METHODS:
        return Request()
    if data.startswith(_TLS_HANDSHAKE) and data[2:FIRST_BYTES] != _FRAME_END:
        return Handshake()
    size = u32_at(data, 0)
    if size < HEADER_BYTES:
        raise BadFrame(f"frame size of {size} bytes is under the header's {HEADER_BYTES}")
    if size > limit_bytes:
        raise FrameTooBig(f"greeting of {size} bytes is over the limit of {limit_bytes}")
    if len(data) < size:
        return More(size)
    return Greeting(_service_in(data, size))


def _service_in(data: bytes, size: int) -> str:
    """The service that a whole first frame names."""
    if data[4] != Kind.CONNECT:
        raise BadGreeting(f"the first frame is of kind {data[4]}, not CONNECT")
    names = data[6] + data[7]
    if names > size - HEADER_BYTES:
        raise BadFrame(f"subject and reply of {names} bytes exceed a frame of {size}")
    name = data[HEADER_BYTES : HEADER_BYTES + data[6]]
    if not SERVICE_NAME.fullmatch(name):
        # What it sent is not repeated: it may be anything at all.
        raise BadGreeting(
            f"a service is named by 1 to 63 letters, digits, '-' and '_', not by these {len(name)}"
            " bytes"
        )
    return name.decode()
