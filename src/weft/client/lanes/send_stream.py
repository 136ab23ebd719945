"""One direction of a lane, at the end that sends: what went by it, and what is not confirmed yet.

Pure: bytes go to a `write` that was given. Everything that goes by the lane is an item, a message
or the mark of a change of way; the other end confirms how many it has taken. What it has not can
be sent again through the gateway, marks included, so that nothing but the way differs.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from weft.wire.byteops import put_u32, u32_at
from weft.wire.frames import Kind
from weft.wire.lane_messages import lane_frame, word_in

# What may be under way to one receiver; a gateway can hold as much of a tail, too.
WINDOW_BYTES = 2 << 20

_TAIL = int(Kind.TAIL)
_MESSAGE = int(Kind.MESSAGE)


class Out:
    """What is sent to one peer by a lane; `write` has bytes sent there.

    Two may have one lane after the other: `lane` tells them apart.
    """

    def __init__(self, peer: int, lane: int, write: Callable[[bytes], object]) -> None:
        self.peer = peer
        self.lane = lane
        # How often the way changed: odd while it is the lane.
        self.number = 0
        self.sent = 0
        self.acked = 0
        self.unacked_bytes = 0
        self.is_over = False
        self._write = write
        # Where each stretch ends, and its bytes.
        self._unacked: deque[tuple[int, bytes]] = deque()
        self._floor = 0

    @property
    def is_by_lane(self) -> bool:
        """Say if what was sent last went by the lane."""
        return self.number % 2 == 1

    @property
    def is_full(self) -> bool:
        """Say if as much is under way as may be."""
        return self.unacked_bytes >= WINDOW_BYTES

    @property
    def is_settled(self) -> bool:
        """Say if everything that went by the lane was taken."""
        return not self._unacked

    def switch(self) -> int:
        """Change the way, and say so on the lane; the gateway must be told the number, too."""
        self.number += 1
        self._send(lane_frame("switch", number=self.number), 1)
        return self.number

    def send(self, stretch: bytes, count: int) -> None:
        """Send whole MESSAGE frames by the lane."""
        self._send(stretch, count)

    def ack(self, count: int) -> bool:
        """The other end has taken so many items; say if that can be.

        What is kept ends with a stretch: some of it may have been taken nevertheless.
        """
        if not self.acked <= count <= self.sent:
            return False
        self.acked = count
        while self._unacked and self._unacked[0][0] <= count:
            self._floor, stretch = self._unacked.popleft()
            self.unacked_bytes -= len(stretch)
        return True

    def finish(self, *, with_tail: bool = True) -> list[bytes]:
        """End the lane: what the gateway must be told so that the other end has everything.

        Nothing may come between these frames on their way to the gateway. Without the tail the
        other end learns how much it lacks.
        """
        if self.is_over:
            return []
        self.is_over = True
        if not with_tail:
            self._unacked.clear()
        which: dict[str, Any] = {"peer": self.peer, "lane": self.lane}
        # `from` is a word of the language.
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
        """What a frame that went by the lane is on its way through the gateway."""
        if frame[4] != _MESSAGE:
            _, facts = word_in(frame)
            return _switch_frame([self], [facts.get_int64("number")])
        tail = bytearray(frame)
        tail[4] = _TAIL
        put_u32(tail, 8, self.peer & 0xFFFFFFFF)
        return bytes(tail)


def frames_in(stretch: bytes) -> list[bytes]:
    """The whole frames that bytes consist of."""
    found = []
    at = 0
    while at < len(stretch):
        end = at + u32_at(stretch, at)
        found.append(stretch[at:end])
        at = end
    return found


def switch_frame(outs: list[Out]) -> bytes:
    """What the gateway is told when the way to these has changed."""
    return _switch_frame(outs, [out.number for out in outs])


def _switch_frame(outs: list[Out], numbers: list[int]) -> bytes:
    peers, lanes = [out.peer for out in outs], [out.lane for out in outs]
    return lane_frame("switch", peers=peers, lanes=lanes, numbers=numbers)
