"""The doors of a simulated gateway: ends of wires for links, and clients that are right there."""

from collections.abc import Callable
from typing import Protocol

from weft.broker.service import Peer
from weft.simulation.wire import Wire

_PIECE_BYTES = 64 << 10


class Owner(Protocol):
    """The gateway that has a door."""

    @property
    def now_ns(self) -> int:
        """The time by its own clock."""

    def hear(self, peer: Peer, data: bytes, then: Callable[[], None] | None = None) -> None:
        """Deal with bytes that a peer sent, when there is time for it."""

    def hear_end(self, act: Callable[[], None]) -> None:
        """A peer sends no more: deal with that after all that it sent."""

    def let_go(self, peer: Peer) -> None:
        """The connection of a peer is over."""


class LinkEnd:
    """One end of a connection between two gateways."""

    def __init__(self, owner: Owner, outgoing: Wire, incoming: Wire) -> None:
        self.owner = owner
        self.outgoing = outgoing
        self.incoming = incoming
        self.peer: Peer
        self._is_finishing = False
        self._is_closed = False
        self.on_sent: Callable[[bytes], None] | None = None
        outgoing.on_room = self.press
        incoming.receiver = self

    # What the gateway asks of its door.

    def fall_behind(self) -> None:
        """Send what is owed, as far as there is room on the wire."""
        if self.peer.outbox.is_cut:
            self.abort()
        else:
            self.press()

    def press(self) -> None:
        """Send more of what is owed."""
        outbox = self.peer.outbox
        while outbox.is_behind() and self.outgoing.has_room:
            data = outbox.draw(_PIECE_BYTES, self.owner.now_ns)
            if self.on_sent is not None:
                self.on_sent(data)
            self.outgoing.send(data)
        if self._is_finishing and not outbox.is_behind():
            self.abort()

    def resume(self) -> None:
        """Read again: it never stopped."""
        self.peer.is_paused = False

    def finish(self) -> None:
        """Close once everything that is owed was sent."""
        self._is_finishing = True
        self.press()

    def abort(self) -> None:
        """Close at once."""
        if not self._is_closed:
            self._is_closed = True
            self.outgoing.end()
            self.incoming.receiver = None
            self.owner.let_go(self.peer)

    # What the network brings.

    def take(self, data: bytes) -> None:
        """Bytes arrive."""
        self.owner.hear(self.peer, data, lambda: self.incoming.took(len(data)))

    def hang_up(self) -> None:
        """The other end closed."""
        self.owner.hear_end(self.abort)


class ClientEnd:
    """The end of a client's connection: it reads at once whatever it is sent."""

    def __init__(self, owner: Owner, took: Callable[[bytes], None]) -> None:
        self.owner = owner
        self.peer: Peer
        self._took = took

    def fall_behind(self) -> None:
        """Have the client read everything."""
        outbox = self.peer.outbox
        while outbox.is_behind():
            self._took(outbox.draw(_PIECE_BYTES, self.owner.now_ns))

    def press(self) -> None:
        """Nothing ever waits here."""

    def resume(self) -> None:
        """Read again: it never stopped."""
        self.peer.is_paused = False

    def finish(self) -> None:
        """Close: everything that was owed was read."""
        self.owner.let_go(self.peer)

    def abort(self) -> None:
        """Close at once."""
        self.owner.let_go(self.peer)
