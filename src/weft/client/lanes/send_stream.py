"""Send stream of a lane: sent items, kept until they are acknowledged.

Pure: bytes go to a given `write`. An item is a message or a path switch; the other end acknowledges
the number of items taken. Unacknowledged items can be sent again through the gateway, path switches
included, so that only the path differs.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from weft.wire.byteops import put_u32, u32_at
from weft.wire.frames import Kind
from weft.wire.lane_messages import lane_frame, word_in

# Limit on data in flight to one receiver; a gateway can hold a tail of this size, too.
WINDOW_BYTES = 2 << 20

_TAIL = int(Kind.TAIL)
_MESSAGE = int(Kind.MESSAGE)


class Out:
    """Send stream to one peer over a lane; `write` sends bytes there.

    `lane` distinguishes consecutive lanes to the same peer.
    """

    def __init__(self, peer: int, lane: int, write: Callable[[bytes], object]) -> None:
        self.peer = peer
        self.lane = lane
        # Number of path switches: odd while the path is the lane.
        self.number = 0
        self.sent = 0
        self.acked = 0
        self.unacked_bytes = 0
        self.is_over = False
        self._write = write
        # Item count at the end of each segment, and its bytes.
        self._unacked: deque[tuple[int, bytes]] = deque()
        self._floor = 0

    @property
    def is_by_lane(self) -> bool:
        """Whether the current path is the lane."""
        return self.number % 2 == 1

    @property
    def is_full(self) -> bool:
        """Whether the data in flight has reached the window."""
        return self.unacked_bytes >= WINDOW_BYTES

    @property
    def is_settled(self) -> bool:
        """Whether all items were acknowledged."""
        return not self._unacked

    def switch(self) -> int:
        """Switch the path and send the switch on the lane; the caller notifies the gateway."""
        self.number += 1
        self._send(lane_frame("switch", number=self.number), 1)
        return self.number

    def send(self, stretch: bytes, count: int) -> None:
        """Send whole MESSAGE frames through the lane."""
        self._send(stretch, count)

    def ack(self, count: int) -> bool:
        """Take an acknowledgement of `count` items; return whether the count is valid.

        Data is kept in whole segments: items of the first one may already be acknowledged.
        """
        if not self.acked <= count <= self.sent:
            return False
        self.acked = count
        while self._unacked and self._unacked[0][0] <= count:
            self._floor, stretch = self._unacked.popleft()
            self.unacked_bytes -= len(stretch)
        return True

    def finish(self, *, with_tail: bool = True) -> list[bytes]:
        """End the lane; return the frames that complete the stream through the gateway.

        They must be sent to the gateway without others in between. Without the tail the other end
        learns only how many items are missing.
        """
        if self.is_over:
            return []
        self.is_over = True
        if not with_tail:
            self._unacked.clear()
        which: dict[str, Any] = {"peer": self.peer, "lane": self.lane}
        # `from` is a keyword of Python.
        told = [lane_frame("tail", **(which | {"from": self._floor}))]
        for _, stretch in self._unacked:
            told += [self._tail(frame) for frame in frames_in(stretch)]
        told.append(lane_frame("end", **which, count=self.sent))
        self._unacked.clear()
        self.unacked_bytes = 0
        return told

    def _send(self, stretch: bytes, count: int) -> None:
        self.sent += count
        self._unacked.append((self.sent, stretch))
        self.unacked_bytes += len(stretch)
        self._write(stretch)

    def _tail(self, frame: bytes) -> bytes:
        """Return the frame that carries a lane frame through the gateway."""
        if frame[4] != _MESSAGE:
            _, facts = word_in(frame)
            return _switch_frame([self], [facts.get_int64("number")])
        tail = bytearray(frame)
        tail[4] = _TAIL
        put_u32(tail, 8, self.peer & 0xFFFFFFFF)
        return bytes(tail)


def frames_in(stretch: bytes) -> list[bytes]:
    """Split bytes into whole frames."""
    found = []
    at = 0
    while at < len(stretch):
        end = at + u32_at(stretch, at)
        found.append(stretch[at:end])
        at = end
    return found


def switch_frame(outs: list[Out]) -> bytes:
    """Return the frame that notifies the gateway of path switches."""
    return _switch_frame(outs, [out.number for out in outs])


def _switch_frame(outs: list[Out], numbers: list[int]) -> bytes:
    peers, lanes = [out.peer for out in outs], [out.lane for out in outs]
    return lane_frame("switch", peers=peers, lanes=lanes, numbers=numbers)
