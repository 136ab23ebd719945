"""Dialing of lanes: by a name on this machine first, then by TCP."""

import asyncio
import os
import socket

from weft.client.connection.transport import SocketTransport
from weft.client.lanes.handshake import CallerHandshake, Invitation
from weft.client.lanes.transport import LaneTransport
from weft.errors import NotAllowed, UnexpectedFrame, Unreachable, WeftError
from weft.wire.address import Address, addresses_from
from weft.wire.frames import Kind
from weft.wire.lane_addresses import is_unix_name
from weft.wire.lane_messages import word_in
from weft.wire.lane_tickets import NONCE_BYTES

_LANE = int(Kind.LANE)


class LaneDial:
    """One attempt to open a lane: its transport, and the handshake with the other end."""

    def __init__(self, invitation: Invitation) -> None:
        self.wire = LaneTransport(self)
        self.calling = CallerHandshake(invitation, os.urandom(NONCE_BYTES))
        self._name = invitation.other.name
        self._answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def call(self, address: str, unix: str) -> str:
        """Connect and authenticate both ends; return "unix" or "tcp".

        Raises:
            Unreachable: No connection to the other end.
            NotAllowed: The other end failed to authenticate, or refused.
        """
        way = await self._reach(address, unix)
        try:
            self.wire.write(self.calling.hello())
            await self._answered
        except BaseException:
            self.wire.close()
            raise
        return way

    def keys(self) -> tuple[bytes, bytes] | None:
        """Return the keys of this and the other end; None if the lane is not encrypted."""
        proofs = self.calling.proofs
        return proofs.keys() if proofs is not None and self.calling.invitation.is_sealed else None

    def took(self, run: list[bytes]) -> None:
        """Take the answer to the handshake.

        Raises:
            WeftError: The answer is not part of a handshake.
        """
        frame = run[0]
        if frame[4] != _LANE:
            raise UnexpectedFrame(f"frame of kind {frame[4]} in the handshake of a lane")
        word, facts = word_in(frame)
        try:
            if word != "serve":
                raise NotAllowed(str(facts.get("reason", word)))
            self.wire.write(self.calling.served(facts))
        except WeftError as error:
            self._fail(error)
        else:
            # The caller may have given up meanwhile.
            if not self._answered.done():
                self._answered.set_result(None)

    def read_all(self) -> None:
        """Do nothing: no acknowledgement during the handshake."""

    def overstepped(self) -> None:
        """Do nothing: the caller gets the error."""

    def broke(self, reason: str) -> None:
        """Fail the attempt: the other end closed the connection."""
        self._fail(Unreachable(f"{self._name} closed the connection: {reason}"))

    def _fail(self, error: WeftError) -> None:
        if not self._answered.done():
            self._answered.set_exception(error)

    async def _reach(self, address: str, unix: str) -> str:
        loop = asyncio.get_running_loop()
        if is_unix_name(unix) and await self._reach_here(unix):
            return "unix"
        if not address:
            raise Unreachable(f"{self._name} cannot be reached on this machine")
        [at] = addresses_from(address)
        try:
            await loop.create_connection(self._line, at.host, at.port)
        except OSError as error:
            self.wire.line = None
            why = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
            raise Unreachable(f"{self._name} cannot be reached at {address}: {why}") from error
        return "tcp"

    async def _reach_here(self, unix: str) -> bool:
        """Connect by a name on this machine; return False if it does not exist here."""
        loop = asyncio.get_running_loop()
        try:
            # Connected here: not every event loop supports abstract socket names.
            sock = socket.socket(socket.AF_UNIX)
        except (AttributeError, OSError):
            return False
        sock.setblocking(False)
        try:
            await loop.sock_connect(sock, "\0" + unix)
        except (OSError, NotImplementedError):
            # On another machine, in another namespace of this one, or not supported by the loop.
            sock.close()
            return False
        except BaseException:
            sock.close()
            raise
        await loop.create_unix_connection(self._line, sock=sock)
        return True

    def _line(self) -> SocketTransport:
        self.wire.line = SocketTransport(Address("lane", 0, False), self.wire)
        return self.wire.line
