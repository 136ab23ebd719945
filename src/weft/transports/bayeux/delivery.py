"""Outbound messages of a Bayeux client, kept until acknowledged where it uses acknowledgements.

Messages are delivered in batches, numbered from 1. A client with the extension `ack` names the last
received batch in each connect, and later ones are delivered again. For other clients a delivered
batch is removed at once.
"""

from collections import deque

# Approximate memory of an entry beside its bytes.
_COST_BYTES = 64


class Delivery:
    """Encoded messages in order; `size` is the memory they use."""

    def __init__(self, *, is_acknowledged: bool) -> None:
        self.is_acknowledged = is_acknowledged
        self.batch = 0
        self.size = 0
        self._unsaid: deque[bytes] = deque()
        # Sent and not acknowledged: each with the batch that it was last sent in.
        self._said: deque[tuple[int, bytes]] = deque()

    @property
    def is_owed(self) -> bool:
        """Return whether there is anything to send, or to send again."""
        return bool(self._unsaid or self._said)

    def add(self, piece: bytes) -> None:
        """Add encoded messages."""
        self._unsaid.append(piece)
        self.size += len(piece) + _COST_BYTES

    def acknowledge(self, batch: int) -> None:
        """Remove a received batch, and all before it."""
        while self._said and self._said[0][0] <= batch:
            _, piece = self._said.popleft()
            self.size -= len(piece) + _COST_BYTES

    def take(self) -> list[bytes]:
        """Return everything to send now, as the next batch."""
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
