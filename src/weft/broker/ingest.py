"""Handle the bytes of one read: split them into runs of frames and dispatch those.

Reads lie in the arena. An incomplete frame at the end is kept by its peer: in `rest`, to precede
its next read, or in `large` if the whole frame is larger than a read.
"""

from weft.broker.control import control
from weft.broker.publish import publish
from weft.broker.replies import end_with
from weft.broker.service import Peer
from weft.errors import Overloaded, ProtocolError
from weft.wire.byteops import cut, put_bytes
from weft.wire.frames import Kind

# Maximum size of a read. A larger frame is assembled outside the arena.
READ_BYTES = 64 << 10
# Limit on the bytes of incomplete large frames of all peers of a service.
UNFINISHED_BYTES = 256 << 20

# First buffer of a large frame of which little has arrived.
_FIRST_LARGE = 4 << 10
_READ = READ_BYTES
_UNFINISHED = UNFINISHED_BYTES
_NOTHING = bytearray()
_MESSAGE = int(Kind.MESSAGE)


def feed(peer: Peer, at: int, end: int) -> None:
    """Handle the arena's bytes from `at` to `end`: the peer's `rest`, then newly read bytes."""
    service = peer.service
    data = service.arena.data
    if not 0 <= at <= end <= service.arena.fill:
        raise ValueError(f"bytes {at} … {end} are not among the {service.arena.fill} of this turn")
    start = at
    peer.heard_ns = service.now_ns
    peer.rest = b""
    run = peer.run
    try:
        while not peer.is_over and run.read(data, at, end):
            at = run.end
            if peer.carrier is not None:
                peer.carrier.take(run)
            elif run.kind == _MESSAGE and peer.is_greeted:
                publish(peer, run)
            else:
                control(peer, run)
            run = peer.run
    except ProtocolError as error:
        end_with(peer, error)
    if at == end or peer.is_over:
        peer.rest_ns = 0
        return
    if at > start or peer.rest_ns == 0:
        peer.rest_ns = service.now_ns
    if run.need > _READ:
        _begin_large(peer, at, end, run.need)
    else:
        peer.rest = cut(data, at, end)


def took_large(peer: Peer, count: int) -> bool:
    """Count N bytes read into the buffer of a large frame; return whether it is complete.

    If not, there is free space in the buffer, or the peer was ended because the service is over
    its limit.
    """
    peer.heard_ns = peer.service.now_ns
    before = peer.large
    length = len(before)
    if not 0 <= count <= length - peer.large_fill:
        raise ValueError(f"{count} bytes do not fit the buffer of a large frame")
    peer.large_fill += count
    if peer.large_fill == peer.large_size:
        return True
    # At most twice the bytes received: an announced size alone does not allocate memory.
    if peer.large_fill == length and _set_large(peer, min(peer.large_size, 2 * length)):
        put_bytes(peer.large, 0, before, 0, length)
    return False


def drop_large(peer: Peer) -> None:
    """Release a large frame, complete or not."""
    peer.service.unfinished_bytes -= len(peer.large)
    peer.large = _NOTHING
    peer.large_fill = 0
    peer.large_size = 0


def _begin_large(peer: Peer, at: int, end: int, need: int) -> None:
    length = end - at
    peer.large_size = need
    if _set_large(peer, min(need, max(2 * length, _FIRST_LARGE))):
        put_bytes(peer.large, 0, peer.service.arena.data, at, length)
        peer.large_fill = length


def _set_large(peer: Peer, size: int) -> bool:
    """Resize the buffer of a large frame; if over the service's limit, end the peer: False."""
    service = peer.service
    if service.unfinished_bytes + size - len(peer.large) > _UNFINISHED:
        drop_large(peer)
        end_with(peer, Overloaded(f"over {_UNFINISHED} bytes of incomplete frames are buffered"))
        return False
    service.unfinished_bytes += size - len(peer.large)
    peer.large = bytearray(size)
    return True
