"""Relays bytes between a TLS connection and a plain socket, in pieces of bounded size.

A piece is read from one side only after the other side has taken the previous one: a slow reader
slows only its own writer. Each direction ends on its own, as it does without TLS.
"""

import asyncio
import contextlib
import socket
import ssl

from weft.errors import ConnectionLost

PIECE_BYTES = 64 << 10
# After the plain side has ended, the peer has this long to close.
_LINGER_S = 5.0


class Pump:
    """One TLS connection, as server or as client.

    A client gives the host name that the server's certificate must match.
    """

    def __init__(self, outer: socket.socket, context: ssl.SSLContext, host: str = "") -> None:
        self._loop = asyncio.get_running_loop()
        self._outer = outer
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=not host, server_hostname=host or None
        )
        self._sending = asyncio.Lock()
        # Bytes sent over the TLS connection.
        self.carried = 0

    async def shake_hands(self) -> None:
        """Do the TLS handshake; the caller sets the timeout.

        Raises:
            OSError: the handshake failed (ssl.SSLError) or the connection was lost.
        """
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._send()
                if not await self._receive():
                    raise ConnectionLost(
                        "the peer closed the connection during the handshake"
                    ) from None
            except ssl.SSLError:
                # Send the pending alert, which names the problem to the peer.
                await self._send()
                raise
            else:
                await self._send()
                return

    async def carry(self, inner: socket.socket) -> None:
        """Relay bytes in both directions until both sides have ended.

        Raises:
            ExceptionGroup: of OSErrors, if either connection fails.
        """
        async with asyncio.TaskGroup() as tasks:
            inward = tasks.create_task(self._inward(inner))
            await self._outward(inner)
            await asyncio.wait([inward], timeout=_LINGER_S)
            inward.cancel()

    async def _inward(self, inner: socket.socket) -> None:
        while data := await self._read():
            await self._loop.sock_sendall(inner, data)
        inner.shutdown(socket.SHUT_WR)

    async def _outward(self, inner: socket.socket) -> None:
        while data := await self._loop.sock_recv(inner, PIECE_BYTES):
            rest = memoryview(data)
            while rest:
                # Writes to memory, one record at a time, so it never blocks.
                rest = rest[self._tls.write(rest) :]
            await self._send()
        # Sends our close_notify; the peer's may come later or never.
        with contextlib.suppress(ssl.SSLWantReadError):
            self._tls.unwrap()
        await self._send()
        self._outer.shutdown(socket.SHUT_WR)

    async def _read(self) -> bytes:
        """Return the next decrypted bytes from the peer; empty at the end."""
        pieces: list[bytes] = []
        while True:
            try:
                piece = self._tls.read(PIECE_BYTES)
                if not piece:
                    return b"".join(pieces)
                pieces.append(piece)
            except ssl.SSLWantReadError:
                if pieces:
                    return b"".join(pieces)
                await self._send_unless_sending()
                await self._receive()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                # With or without close_notify: frames carry their own length.
                return b"".join(pieces)

    async def _receive(self) -> bool:
        """Receive one piece from the peer; False at the end of its stream."""
        data = await self._loop.sock_recv(self._outer, PIECE_BYTES)
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
        return bool(data)

    async def _send_unless_sending(self) -> None:
        # Reading must not wait for a peer that does not read; a running _send() takes this along.
        if self._outgoing.pending and not self._sending.locked():
            await self._send()

    async def _send(self) -> None:
        async with self._sending:
            while self._outgoing.pending:
                records = self._outgoing.read()
                await self._loop.sock_sendall(self._outer, records)
                self.carried += len(records)
