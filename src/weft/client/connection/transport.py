"""TCP or TLS connection to a gateway."""

import asyncio
import fcntl
import os
import ssl
import sys
import termios
from typing import Protocol, cast

from weft.errors import Unreachable
from weft.wire.address import Address

# High-water mark of the socket's buffer; above it frames stay in the send buffer.
_HIGH_WATER_BYTES = 64 << 10
# Limit on waiting for a peer that reads nothing before the connection is aborted.
PARTING_S = 2.0
# Maximum size of one read.
READ_BYTES = 128 << 10


class TransportOwner(Protocol):
    """Interface of the transport's owner."""

    def received(self, line: "SocketTransport", data: memoryview) -> None:
        """Take received bytes; they are valid only during the call."""

    def writable(self, line: "SocketTransport") -> None:
        """Continue after the socket became writable."""

    def ended(self, line: "SocketTransport", error: Exception | None) -> None:
        """Handle the end of the connection."""


class SocketTransport(asyncio.BufferedProtocol):
    """asyncio protocol of one connection, with direct writes to the socket."""

    def __init__(self, address: Address, owner: TransportOwner) -> None:
        self.address = address
        self.is_blocked = False
        self.is_resting = False
        self._loop = asyncio.get_running_loop()
        self.welcomed: asyncio.Future[None] = self._loop.create_future()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._owner = owner
        self._transport: asyncio.Transport | None = None
        # Writes that bypass the transport, which would copy them; the transport closes it.
        self._fd = -1
        self._given_up = 0
        # All bytes ever passed to write().
        self.written_bytes = 0
        # One buffer for all reads: a new object for each costs more than the read.
        self._room = memoryview(bytearray(READ_BYTES))

    @property
    def unsent_bytes(self) -> int:
        """Bytes that the socket has not accepted, or, after abort(), never did."""
        waiting = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return self._given_up + waiting

    def unacknowledged_bytes(self) -> int:
        """Return how many bytes the peer's host has not acknowledged, as far as known."""
        if self._fd < 0 or self._transport is None:
            return self.unsent_bytes
        try:
            queued = fcntl.ioctl(self._fd, termios.TIOCOUTQ, bytes(4))
        except OSError:
            # The socket is broken, or has no such queue: its end is detected elsewhere.
            return self.unsent_bytes
        return self.unsent_bytes + int.from_bytes(queued, sys.byteorder)

    def local_host(self) -> str:
        """Return the local address of the connection; empty if there is none."""
        name = None if self._transport is None else self._transport.get_extra_info("sockname")
        return str(name[0]) if isinstance(name, tuple) else ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the new transport."""
        # uvloop's transports implement the interface without inheriting from it.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_HIGH_WATER_BYTES)
        sock = self._transport.get_extra_info("socket")
        if sock is not None and not self.address.is_tls:
            self._fd = sock.fileno()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  # it is always the same
        """Return the buffer for received bytes."""
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        """Pass received bytes on; they are valid only during the call."""
        self._owner.received(self, self._room[:nbytes])

    def pause_writing(self) -> None:
        """Note that the socket's buffer is full."""
        self.is_blocked = True

    def resume_writing(self) -> None:
        """Note that the socket's buffer has space again."""
        self.is_blocked = False
        self._owner.writable(self)

    def connection_lost(self, error: Exception | None) -> None:
        """Handle the end of the connection, by either side."""
        self._transport = None
        if not self.ended.done():
            self.ended.set_result(None)
            self._owner.ended(self, error)

    def write(self, data: bytes | memoryview) -> None:
        """Send bytes, and copy the rest that the socket does not accept; ignored after the end."""
        if self._transport is None or self._transport.is_closing():
            return
        self.written_bytes += len(data)
        sent = self._send(data)
        if sent < len(data):
            self._transport.write(bytes(data[sent:]))

    def rest(self, is_wanted: bool) -> None:
        """Pause or resume reading."""
        if self._transport is None or self._transport.is_closing() or is_wanted == self.is_resting:
            return
        self.is_resting = is_wanted
        if is_wanted:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def leave(self, within_s: float) -> None:
        """Abort once the peer stops reading, or after `within_s`."""
        deadline = self._loop.time() + within_s
        self._loop.call_later(PARTING_S, self._leave, self.unsent_bytes, deadline)

    def abort(self) -> None:
        """End the connection now; unsent bytes are lost."""
        if self._transport is not None:
            self._given_up += self._transport.get_write_buffer_size()
            self._transport.abort()

    def _send(self, data: bytes | memoryview) -> int:
        """Write to the socket directly unless bytes are queued; return the number written."""
        transport = self._transport
        if self._fd < 0 or transport is None or transport.get_write_buffer_size():
            return 0
        try:
            return os.write(self._fd, data)
        except OSError:
            # The socket is full or broken; in the latter case the transport reports the end.
            return 0

    def _leave(self, unsent: int, deadline: float) -> None:
        left = self.unsent_bytes
        if left < unsent and self._loop.time() < deadline:
            self._loop.call_later(PARTING_S, self._leave, left, deadline)
        else:
            self.abort()


async def dial(
    address: Address, tls: ssl.SSLContext | None, owner: TransportOwner
) -> SocketTransport:
    """Connect to a gateway's address.

    Raises:
        Unreachable: No answer, or an untrusted certificate.
    """
    line = SocketTransport(address, owner)
    await reach(line, tls)
    return line


async def reach(line: SocketTransport, tls: ssl.SSLContext | None) -> None:
    """Connect a transport to its address.

    Raises:
        Unreachable: See dial().
    """
    address = line.address
    context = (tls or ssl.create_default_context()) if address.is_tls else None
    loop = asyncio.get_running_loop()
    try:
        await loop.create_connection(lambda: line, address.host, address.port, ssl=context)
    except ssl.SSLCertVerificationError as error:
        why = f"the certificate of {address} cannot be trusted: {error.verify_message}"
        raise Unreachable(why) from error
    except ssl.SSLError as error:
        raise Unreachable(f"{address} does not speak TLS: {error.reason}") from error
    except (OSError, ValueError) as error:
        # ValueError: a name that is not valid for a lookup.
        raise Unreachable(f"no gateway answers at {address}: {_reason(error)}") from error


def _reason(error: OSError | ValueError) -> str:
    """Return the text of an error without its number: event loops word it differently."""
    number = error.errno if isinstance(error, OSError) else None
    if number is None or number < 0:
        return str(error) or "it closed the connection"
    return os.strerror(number)
