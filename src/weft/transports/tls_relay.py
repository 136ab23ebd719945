"""Carries bytes between a TLS connection and a plain socket, a bounded piece at a time.

No more is taken from one side before the other has taken the last piece: a slow reader slows its
own writer and nobody else. Each direction ends by itself, as it does without TLS.
"""

import asyncio
import contextlib
import socket
import ssl

from weft.errors import ConnectionLost

PIECE_BYTES = 64 << 10
# Once the plain side has said all it has to say, the peer has this long to hang up.
_LINGER_S = 5.0


class Pump:
    """One TLS connection: the server's side of it, or that of a client.

    A client names the host that it expects; what the server shows must be for it.
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
        # How many bytes the TLS connection has taken.
        self.carried = 0

    async def shake_hands(self) -> None:
        """Agree with the peer on how to encrypt; whoever calls bounds the time.

        Raises:
            OSError: the peer does not, or is gone; an ssl.SSLError says what is wrong.
        """
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._send()
                if not await self._receive():
                    raise ConnectionLost("the peer left during the handshake") from None
            except ssl.SSLError:
                # What is still to be sent tells the peer what is wrong.
                await self._send()
                raise
            else:
                await self._send()
                return

    async def carry(self, inner: socket.socket) -> None:
        """Move bytes both ways until both sides have ended.

        Raises:
            ExceptionGroup: of an OSError, if either connection fails.
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
                # It goes to memory, a record at a time, so it never has to wait.
                rest = rest[self._tls.write(rest) :]
            await self._send()
        # Our end is said with this; the peer's may come later, or never.
        with contextlib.suppress(ssl.SSLWantReadError):
            self._tls.unwrap()
        await self._send()
        self._outer.shutdown(socket.SHUT_WR)

    async def _read(self) -> bytes:
        """What the peer sent next, decrypted; empty when it has ended."""
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
                # With or without a proper farewell: frames say for themselves where they end.
                return b"".join(pieces)

    async def _receive(self) -> bool:
        """Take in one piece of what the peer sent; False if it will send no more."""
        data = await self._loop.sock_recv(self._outer, PIECE_BYTES)
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
        return bool(data)

    async def _send_unless_sending(self) -> None:
        # Reading must not wait for a peer that does not read; whoever is sending takes this along.
        if self._outgoing.pending and not self._sending.locked():
            await self._send()

    async def _send(self) -> None:
        async with self._sending:
            while self._outgoing.pending:
                records = self._outgoing.read()
                await self._loop.sock_sendall(self._outer, records)
                self.carried += len(records)
