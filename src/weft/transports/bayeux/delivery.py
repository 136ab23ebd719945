"""What a Bayeux client has yet to get, and with acknowledgements what it may have to get again.

Messages are delivered in batches, numbered from 1. A client that acknowledges names the last batch
it got with each connect; whatever came later was lost on its way and is said again. For any other
client what was delivered is forgotten.
"""

from collections import deque

# What it takes to keep a piece beside its bytes, about.
_COST_BYTES = 64


class Delivery:
    """Texts of one or several messages, in order; `size` is the memory they take."""

    def __init__(self, *, is_acknowledged: bool) -> None:
        self.is_acknowledged = is_acknowledged
        self.batch = 0
        self.size = 0
        self._unsaid: deque[bytes] = deque()
        # Said and not acknowledged: the batch that each was last said in.
        self._said: deque[tuple[int, bytes]] = deque()

    @property
    def is_owed(self) -> bool:
        """Say if there is anything to be said, or to be said again."""
        return bool(self._unsaid or self._said)

    def add(self, piece: bytes) -> None:
        """Owe the client messages."""
        self._unsaid.append(piece)
        self.size += len(piece) + _COST_BYTES

    def acknowledge(self, batch: int) -> None:
        """The client has this batch, and all before it."""
        while self._said and self._said[0][0] <= batch:
            _, piece = self._said.popleft()
            self.size -= len(piece) + _COST_BYTES

    def take(self) -> list[bytes]:
        """Everything that is to be said now: the next batch."""
        pieces = [piece for _, piece in self._said]
        pieces.extend(self._unsaid)
        self._unsaid.clear()
        if pieces:
            self.batch += 1
        if self.is_acknowledged:
            self._said = deque((self.batch, piece) for piece in pieces)
        else:
            self.size = 0
        return pieces
