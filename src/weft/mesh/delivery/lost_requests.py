"""Fails requests and answers that were lost on the way to another gateway.

The receiving gateway reports lost ranges. Their frames are looked up in the retransmit buffer;
requesters of frames that are no longer in it get no error.
"""

from bisect import bisect_right

from weft.broker.replies import error_frame
from weft.broker.requests import refuse_request
from weft.errors import ResponderGone
from weft.mesh.delivery.remote_gateway import RemoteGateway
from weft.mesh.delivery.retransmit_buffer import RetransmitBuffer
from weft.mesh.protocol import LostRanges
from weft.mesh.routing.forward_header import ONE
from weft.wire.byteops import u32_at
from weft.wire.frames import HEADER_BYTES, Flag, Kind

_ERROR = int(Kind.ERROR)
_REFUSED = (int(Kind.MESSAGE), int(Flag.REQUEST))
_INBOX = b"_INBOX."


class LostRequests:
    """Lost ranges by gateway, until the requesters have been notified."""

    def __init__(self, distants: dict[int, RemoteGateway], ring: RetransmitBuffer) -> None:
        self._distants = distants
        self._ring = ring
        self._lost: dict[int, list[tuple[int, int]]] = {}

    def hear(self, origin: int, word: LostRanges) -> None:
        """Store lost ranges; a gateway repeats its report."""
        distant = self._distants.get(origin)
        if distant is None:
            return
        for told, last in word.ranges:
            first = max(told, distant.missed)
            if first <= last < distant.next:
                self._lost.setdefault(origin, []).append((first, last))
                distant.missed = last + 1

    def tick(self) -> None:
        """Fail the requests in lost ranges; batched, because it scans the retransmit buffer."""
        lost, self._lost = self._lost, {}
        for number, ranges in lost.items():
            # The requests of a gateway that was forgotten have failed already.
            if number in self._distants:
                self._refuse_all(self._distants[number], ranges)

    def _refuse_all(self, distant: RemoteGateway, ranges: list[tuple[int, int]]) -> None:
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


def _refuse(distant: RemoteGateway, frame: bytes) -> None:
    """Send an error to the requester of a lost frame."""
    peer = distant.peer
    if frame[4] == _ERROR:
        peer.owe(frame)
        return
    names = HEADER_BYTES + frame[6]
    subject = frame[HEADER_BYTES:names]
    if subject.startswith(_INBOX):
        # Only the requester's gateway knows which request the answer belongs to.
        gone = ResponderGone("the answer was lost on its way")
        peer.owe(error_frame(peer, b"", subject, _REFUSED, gone))
    else:
        gone = ResponderGone(f"the request was lost on its way to {distant.name}")
        refuse_request(peer, frame[names : names + frame[7]], gone)
