"""Simulated transports: ends of links, and clients without a network in between."""

from collections.abc import Callable
from typing import Protocol

from weft.broker.service import Peer
from weft.simulation.wire import Wire

_PIECE_BYTES = 64 << 10


class SimTransportOwner(Protocol):
    """Gateway that owns a transport."""

    @property
    def now_ns(self) -> int:
        """Monotonic time by its own clock."""

    def hear(self, peer: Peer, data: bytes, then: Callable[[], None] | None = None) -> None:
        """Process received bytes, now or in the next turn."""

    def hear_end(self, act: Callable[[], None]) -> None:
        """Process the end of a connection after all that was received from it."""

    def let_go(self, peer: Peer) -> None:
        """Remove a peer whose connection is closed."""


class LinkEnd:
    """One end of a connection between two gateways."""

    def __init__(self, owner: SimTransportOwner, outgoing: Wire, incoming: Wire) -> None:
        self.owner = owner
        self.outgoing = outgoing
        self.incoming = incoming
        self.peer: Peer
        self._is_finishing = False
        self._is_closed = False
        self.on_sent: Callable[[bytes], None] | None = None
        outgoing.on_room = self.press
        incoming.receiver = self

    # Called by the gateway.

    def fall_behind(self) -> None:
        """Send the backlog while the wire has room."""
        if self.peer.outbox.is_cut:
            self.abort()
        else:
            self.press()

    def press(self) -> None:
        """Send more of the backlog."""
        outbox = self.peer.outbox
        while outbox.is_behind() and self.outgoing.has_room:
            data = outbox.draw(_PIECE_BYTES, self.owner.now_ns)
            if self.on_sent is not None:
                self.on_sent(data)
            self.outgoing.send(data)
        if self._is_finishing and not outbox.is_behind():
            self.abort()

    def resume(self) -> None:
        """Resume reading, which in fact never stops."""
        self.peer.is_paused = False

    def finish(self) -> None:
        """Close after the backlog is sent."""
        self._is_finishing = True
        self.press()

    def abort(self) -> None:
        """Close at once."""
        if not self._is_closed:
            self._is_closed = True
            self.outgoing.end()
            self.incoming.receiver = None
            self.owner.let_go(self.peer)

    # Called by the network.

    def take(self, data: bytes) -> None:
        """Process received bytes."""
        self.owner.hear(self.peer, data, lambda: self.incoming.took(len(data)))

    def hang_up(self) -> None:
        """Handle a close by the other end."""
        self.owner.hear_end(self.abort)


class ClientEnd:
    """End of a client's connection, which reads without delay."""

    def __init__(self, owner: SimTransportOwner, took: Callable[[bytes], None]) -> None:
        self.owner = owner
        self.peer: Peer
        self._took = took

    def fall_behind(self) -> None:
        """Pass the whole backlog to the client."""
        outbox = self.peer.outbox
        while outbox.is_behind():
            self._took(outbox.draw(_PIECE_BYTES, self.owner.now_ns))

    def press(self) -> None:
        """Do nothing: there is never a backlog."""

    def resume(self) -> None:
        """Resume reading, which in fact never stops."""
        self.peer.is_paused = False

    def finish(self) -> None:
        """Close; the client has read everything."""
        self.owner.let_go(self.peer)

    def abort(self) -> None:
        """Close at once."""
        self.owner.let_go(self.peer)
