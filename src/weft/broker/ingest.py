"""What one peer sent, from the bytes of a read to what they ask for.

Reads lie in the arena. What is left of a frame that has not fully arrived stays with its peer: in
`rest`, to be put in front of its next read, or in `large` if the whole frame would not fit there.
"""

from weft.broker.control import control
from weft.broker.publish import publish
from weft.broker.replies import end_with
from weft.broker.service import Peer
from weft.errors import Overloaded, ProtocolError
from weft.wire.byteops import cut, put_bytes
from weft.wire.frames import Kind

# The most that is read at once. A larger frame is collected apart from the arena.
READ_BYTES = 64 << 10
# All that peers of one service may have sent of large frames that are not complete.
UNFINISHED_BYTES = 256 << 20

# What is set aside for a large frame of which hardly anything came.
_FIRST_LARGE = 4 << 10
_READ = READ_BYTES
_UNFINISHED = UNFINISHED_BYTES
_NOTHING = bytearray()
_MESSAGE = int(Kind.MESSAGE)


def feed(peer: Peer, at: int, end: int) -> None:
    """Deal with the bytes of the arena that a peer sent, its `rest` in front of them."""
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
    """So many bytes of a large frame were read into its room; say if it is complete.

    There is room for more afterwards, or the peer is over: then the service has none.
    """
    peer.heard_ns = peer.service.now_ns
    before = peer.large
    length = len(before)
    if not 0 <= count <= length - peer.large_fill:
        raise ValueError(f"{count} bytes are not in the room of a large frame")
    peer.large_fill += count
    if peer.large_fill == peer.large_size:
        return True
    # Never much more than has come of it: whoever announces much must send it first.
    if peer.large_fill == length and _set_large(peer, min(peer.large_size, 2 * length)):
        put_bytes(peer.large, 0, before, 0, length)
    return False


def drop_large(peer: Peer) -> None:
    """Forget a large frame, complete or not."""
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
    """Give a large frame other room; False if that is more than the service has, and it is over."""
    service = peer.service
    if service.unfinished_bytes + size - len(peer.large) > _UNFINISHED:
        drop_large(peer)
        end_with(peer, Overloaded(f"over {_UNFINISHED} bytes of unfinished frames are waiting"))
        return False
    service.unfinished_bytes += size - len(peer.large)
    peer.large = bytearray(size)
    return True
