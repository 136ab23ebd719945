"""One TCP or TLS connection to a gateway: bytes both ways, and how it ended."""

import asyncio
import fcntl
import os
import ssl
import sys
import termios
from typing import Protocol, cast

from weft.errors import Unreachable
from weft.wire.address import Address

# Beyond this the socket is considered full, and what follows waits in our own buffer.
_HIGH_WATER_BYTES = 64 << 10
# How long the other end may take nothing of what it is owed before it is left.
PARTING_S = 2.0
# The most that one read brings.
READ_BYTES = 128 << 10


class Owner(Protocol):
    """Whoever speaks over a line."""

    def received(self, line: "Line", data: memoryview) -> None:
        """Bytes arrived; they are gone when this returns."""

    def writable(self, line: "Line") -> None:
        """The socket takes bytes again."""

    def ended(self, line: "Line", error: Exception | None) -> None:
        """Nothing more arrives or leaves."""


class Line(asyncio.BufferedProtocol):
    """The transport's view of its owner, and the owner's of the transport."""

    def __init__(self, address: Address, owner: Owner) -> None:
        self.address = address
        self.is_blocked = False
        self.is_resting = False
        self._loop = asyncio.get_running_loop()
        self.welcomed: asyncio.Future[None] = self._loop.create_future()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._owner = owner
        self._transport: asyncio.Transport | None = None
        # For writing without the transport, which would keep a copy; it closes it.
        self._fd = -1
        self._given_up = 0
        # All that was ever given to write().
        self.written_bytes = 0
        # Read into again and again: a new object for every read costs more than the read.
        self._room = memoryview(bytearray(READ_BYTES))

    @property
    def unsent_bytes(self) -> int:
        """What the socket has not taken; after abort(), what it never did."""
        waiting = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return self._given_up + waiting

    def unacknowledged_bytes(self) -> int:
        """Return how many bytes have not reached the machine of the gateway, as far as is known."""
        if self._fd < 0 or self._transport is None:
            return self.unsent_bytes
        try:
            queued = fcntl.ioctl(self._fd, termios.TIOCOUTQ, bytes(4))
        except OSError:
            # The socket is broken, or has no such queue: its end is noticed elsewhere.
            return self.unsent_bytes
        return self.unsent_bytes + int.from_bytes(queued, sys.byteorder)

    def local_host(self) -> str:
        """The address of this machine that it goes out from; empty if there is none."""
        name = None if self._transport is None else self._transport.get_extra_info("sockname")
        return str(name[0]) if isinstance(name, tuple) else ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport that was made."""
        # uvloop's transports are such without being derived from it.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_HIGH_WATER_BYTES)
        sock = self._transport.get_extra_info("socket")
        if sock is not None and not self.address.is_tls:
            self._fd = sock.fileno()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  # it is always the same
        """Where to put what arrives."""
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        """Pass on what arrived; it is gone when this returns."""
        self._owner.received(self, self._room[:nbytes])

    def pause_writing(self) -> None:
        """The socket's buffer is full."""
        self.is_blocked = True

    def resume_writing(self) -> None:
        """The socket's buffer has emptied."""
        self.is_blocked = False
        self._owner.writable(self)

    def connection_lost(self, error: Exception | None) -> None:
        """The end, from whichever side."""
        self._transport = None
        if not self.ended.done():
            self.ended.set_result(None)
            self._owner.ended(self, error)

    def write(self, data: bytes | memoryview) -> None:
        """Send bytes, or copy them to be sent; after the end they go nowhere."""
        if self._transport is None or self._transport.is_closing():
            return
        self.written_bytes += len(data)
        sent = self._send(data)
        if sent < len(data):
            self._transport.write(bytes(data[sent:]))

    def rest(self, is_wanted: bool) -> None:
        """Stop reading, or read again."""
        if self._transport is None or self._transport.is_closing() or is_wanted == self.is_resting:
            return
        self.is_resting = is_wanted
        if is_wanted:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def leave(self, within_s: float) -> None:
        """End it once the other end takes nothing more of what it is owed, or after some time."""
        deadline = self._loop.time() + within_s
        self._loop.call_later(PARTING_S, self._leave, self.unsent_bytes, deadline)

    def abort(self) -> None:
        """End it now; what is unsent is lost."""
        if self._transport is not None:
            self._given_up += self._transport.get_write_buffer_size()
            self._transport.abort()

    def _send(self, data: bytes | memoryview) -> int:
        """Give the socket what it takes at once, if nothing waits before it; how many bytes."""
        transport = self._transport
        if self._fd < 0 or transport is None or transport.get_write_buffer_size():
            return 0
        try:
            return os.write(self._fd, data)
        except OSError:
            # It is full, or broken: then the transport meets with the same, and tells of the end.
            return 0

    def _leave(self, unsent: int, deadline: float) -> None:
        left = self.unsent_bytes
        if left < unsent and self._loop.time() < deadline:
            self._loop.call_later(PARTING_S, self._leave, left, deadline)
        else:
            self.abort()


async def dial(address: Address, tls: ssl.SSLContext | None, owner: Owner) -> Line:
    """Connect to a gateway's address.

    Raises:
        Unreachable: nobody answers there, or not by the name that its certificate has.
    """
    line = Line(address, owner)
    await reach(line, tls)
    return line


async def reach(line: Line, tls: ssl.SSLContext | None) -> None:
    """Connect a line to its address.

    Raises:
        Unreachable: as dial() says.
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
        raise Unreachable(f"no TLS is spoken at {address}: {error.reason}") from error
    except (OSError, ValueError) as error:
        # A ValueError is a name that cannot even be looked up.
        raise Unreachable(f"no gateway answers at {address}: {_reason(error)}") from error


def _reason(error: OSError | ValueError) -> str:
    """Why, without the number: loops word the same error differently."""
    number = error.errno if isinstance(error, OSError) else None
    if number is None or number < 0:
        return str(error) or "it hung up"
    return os.strerror(number)
