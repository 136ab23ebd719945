"""Requests and answers that were lost on their way to another gateway: whoever asked is told.

That gateway says which numbers it never got. What they were is looked for among what was lately
sent; of what is not kept any more nobody is told.
"""

from bisect import bisect_right

from weft.broker.replies import error_frame
from weft.broker.requests import refuse_request
from weft.errors import ResponderGone
from weft.mesh.delivery.remote_gateway import Distant
from weft.mesh.delivery.retransmit_buffer import Ring
from weft.mesh.protocol import Missed
from weft.mesh.routing.forward_header import ONE
from weft.wire.byteops import u32_at
from weft.wire.frames import HEADER_BYTES, Flag, Kind

_ERROR = int(Kind.ERROR)
_REFUSED = (int(Kind.MESSAGE), int(Flag.REQUEST))
_INBOX = b"_INBOX."


class Refusals:
    """What one gateway sent that never arrived, until those who wait for it were told."""

    def __init__(self, distants: dict[int, Distant], ring: Ring) -> None:
        self._distants = distants
        self._ring = ring
        self._lost: dict[int, list[tuple[int, int]]] = {}

    def hear(self, origin: int, word: Missed) -> None:
        """A gateway says what it never got; it says so several times."""
        distant = self._distants.get(origin)
        if distant is None:
            return
        for told, last in word.ranges:
            first = max(told, distant.missed)
            if first <= last < distant.next:
                self._lost.setdefault(origin, []).append((first, last))
                distant.missed = last + 1

    def tick(self) -> None:
        """Tell those who wait; not more often: all that is kept is looked through."""
        lost, self._lost = self._lost, {}
        for number, ranges in lost.items():
            # Whoever waited for one that was forgotten was told then.
            if number in self._distants:
                self._refuse_all(self._distants[number], ranges)

    def _refuse_all(self, distant: Distant, ranges: list[tuple[int, int]]) -> None:
        firsts = [first for first, _ in ranges]
        for piece in self._ring.find(distant.number, firsts[0], ranges[-1][1] + 1):
            if not piece.flags & ONE:
                continue
            number, at = piece.first, 0
            while at < len(piece.frames):
                end = at + u32_at(piece.frames, at)
                if number <= ranges[bisect_right(firsts, number) - 1][1]:
                    _refuse(distant, piece.frames[at:end])
                number, at = number + 1, end


def _refuse(distant: Distant, frame: bytes) -> None:
    """Tell whoever waits for what a lost frame is about."""
    peer = distant.peer
    if frame[4] == _ERROR:
        peer.owe(frame)
        return
    names = HEADER_BYTES + frame[6]
    subject = frame[HEADER_BYTES:names]
    if subject.startswith(_INBOX):
        # Only its gateway knows if one alone was asked for it, and what it had asked for.
        gone = ResponderGone("the answer was lost on its way")
        peer.owe(error_frame(peer, b"", subject, _REFUSED, gone))
    else:
        gone = ResponderGone(f"the request was lost on its way to {distant.name}")
        refuse_request(peer, frame[names : names + frame[7]], gone)
