"""Listener for lanes: a TCP port and an abstract Unix socket name.

Opened on the first invitation from the gateway. Unauthenticated peers get at most a refusal, and
only a limited number of them at a time.
"""

import asyncio
import errno
import os
import secrets
from collections.abc import Callable
from contextlib import suppress

from weft.client.connection.transport import SocketTransport
from weft.client.lanes.handshake import Invitation, ReceiverHandshake
from weft.client.lanes.transport import LaneTransport
from weft.errors import NotAllowed, UnexpectedFrame, WeftError
from weft.wire.address import Address
from weft.wire.frames import Kind
from weft.wire.lane_addresses import UNIX_RANDOM_BYTES, unix_name
from weft.wire.lane_messages import lane_frame, word_in
from weft.wire.lane_tickets import NONCE_BYTES

# Limits on the number and the time of unauthenticated connections.
STRANGERS_MAX = 16
GREETING_S = 5.0
# Limit on stored invitations.
INVITATIONS_MAX = 1024

_LANE = int(Kind.LANE)

# Called with an authenticated transport, its invitation and the handshake.
Welcome = Callable[[LaneTransport, Invitation, ReceiverHandshake], None]


class LaneListener:
    """Accepts lanes for one connection."""

    def __init__(self, welcome: Welcome) -> None:
        self.port = 0
        self.unix = ""
        self.refused = 0
        self._welcome = welcome
        self._loop = asyncio.get_running_loop()
        self._host = ""
        self._opening = asyncio.Lock()
        self._servers: list[asyncio.AbstractServer] = []
        # In order of arrival.
        self._strangers: dict[Stranger, None] = {}
        self._invitations: dict[bytes, Invitation] = {}

    async def open(self, host: str) -> None:
        """Listen on a local address, and on no other; does nothing if it already does.

        Raises:
            OSError: Cannot listen there.
        """
        # Concurrent invitations share one listener.
        async with self._opening:
            if not self._servers or host != self._host:
                await self._open(host)

    async def _open(self, host: str) -> None:
        self._stop()
        self.unix = ""
        if not host:
            # An empty host would listen on all addresses of the machine.
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
        self._host = host
        server = await self._loop.create_server(self._met, host, 0)
        self._servers.append(server)
        self.port = server.sockets[0].getsockname()[1]
        name = unix_name(secrets.token_hex(UNIX_RANDOM_BYTES))
        # An abstract name ends with the process; only Linux has them.
        with suppress(OSError, NotImplementedError, AttributeError):
            self._servers.append(await self._loop.create_unix_server(self._met, "\0" + name))
            self.unix = name

    def invite(self, invitation: Invitation) -> None:
        """Accept one connection with this ticket until it expires."""
        while len(self._invitations) >= INVITATIONS_MAX:
            del self._invitations[next(iter(self._invitations))]
        self._invitations[invitation.ticket] = invitation

    def take(self, ticket: bytes) -> Invitation | None:
        """Remove and return the invitation of a ticket; None if unknown, used or expired."""
        invitation = self._invitations.pop(ticket, None)
        if invitation is None or invitation.ends_at < self._loop.time():
            return None
        return invitation

    def expects(self, number: int) -> bool:
        """Return whether a peer has a valid invitation, or is in the handshake."""
        now = self._loop.time()
        return self.is_shown(number) or any(
            each.other.number == number and each.ends_at >= now
            for each in self._invitations.values()
        )

    def is_shown(self, number: int) -> bool:
        """Return whether a peer is in the handshake, with a ticket."""
        shown = [stranger.shown for stranger in self._strangers]
        return any(each is not None and each.other.number == number for each in shown)

    def forget(self) -> None:
        """Revoke all invitations and close pending connections."""
        for stranger in list(self._strangers):
            stranger.wire.close()
        self._invitations.clear()

    def close(self) -> None:
        """Stop listening."""
        self._stop()
        self.forget()

    def _stop(self) -> None:
        for server in self._servers:
            server.close()
        self._servers.clear()

    def answering(self) -> ReceiverHandshake:
        """Return the receiver's side of a new handshake."""
        return ReceiverHandshake(self.take, os.urandom(NONCE_BYTES))

    def _met(self) -> SocketTransport:
        stranger = Stranger(self.answering(), self._passed, self._left)
        wire = stranger.wire
        wire.line = SocketTransport(Address("lane", 0, False), wire)
        self._strangers[stranger] = None
        if len(self._strangers) > STRANGERS_MAX:
            # The oldest pending connection has been unauthenticated for longest.
            oldest = next(iter(self._strangers))
            self._left(oldest)
            # It may have been accepted in this turn, and have no socket yet.
            self._loop.call_soon(oldest.refuse, "too many pending connections")
        return wire.line

    def _passed(
        self, stranger: "Stranger", invitation: Invitation, answering: ReceiverHandshake
    ) -> None:
        if stranger not in self._strangers:
            raise NotAllowed("too many pending connections")
        self._welcome(stranger.wire, invitation, answering)
        del self._strangers[stranger]

    def _left(self, stranger: "Stranger") -> None:
        if stranger in self._strangers:
            del self._strangers[stranger]
            self.refused += 1


class Stranger:
    """Pending connection that is not authenticated yet."""

    def __init__(
        self,
        answering: ReceiverHandshake,
        passed: Callable[["Stranger", Invitation, ReceiverHandshake], None],
        left: Callable[["Stranger"], None],
    ) -> None:
        self.wire = LaneTransport(self)
        self._answering = answering
        self._passed = passed
        self._left = left
        self._timer = asyncio.get_running_loop().call_later(GREETING_S, self.refuse, "too slow")

    @property
    def shown(self) -> Invitation | None:
        """The invitation of the ticket that it has shown."""
        return self._answering.invitation

    def refuse(self, reason: str) -> None:
        """Send a refusal and close the connection."""
        self.wire.write(lane_frame("refused", reason=reason))
        self.wire.close(reason)

    def took(self, run: list[bytes]) -> None:
        """Take handshake messages."""
        try:
            self._greeted(run[0])
        except WeftError as error:
            self.refuse(str(error))

    def read_all(self) -> None:
        """Do nothing: no acknowledgement during the handshake."""

    def overstepped(self) -> None:
        """Do nothing: it is counted when the connection ends."""

    def broke(self, reason: str) -> None:  # noqa: ARG002  # the reason is not reported
        """Handle the end of the connection, by either side."""
        self._timer.cancel()
        self._left(self)

    def _greeted(self, frame: bytes) -> None:
        if frame[4] != _LANE:
            raise UnexpectedFrame(f"frame of kind {frame[4]} in the handshake of a lane")
        word, facts = word_in(frame)
        if word == "hello":
            self.wire.write(self._answering.hello(facts))
        elif word == "prove":
            invitation = self._answering.proven(facts)
            self._timer.cancel()
            self._passed(self, invitation, self._answering)
        else:
            raise NotAllowed(f"message {word!r} in the handshake of a lane")
