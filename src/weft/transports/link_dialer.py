"""Dials other gateways and adds the remote end of each link as a peer.

A dial has DIAL_S for everything from the DNS lookup to the end of the TLS handshake, and at most
DIALS_MAX dials run at once. DNS lookups do not block the event loop. Without TLS, only loopback
addresses are dialled unless plain links are allowed.
"""

import asyncio
import ipaddress
import logging
import os
import socket
import ssl
from collections.abc import Callable
from typing import NamedTuple

from weft.broker.service import Peer
from weft.errors import BadOption, NotAllowed, Unreachable
from weft.transports.loop.poller import Poll
from weft.transports.loop.turn import Turn
from weft.transports.tcp import TcpDoor, prepare
from weft.transports.tls_relay import Pump

_log = logging.getLogger(__name__)

DIAL_S = 3.0
DIALS_MAX = 32
# Addresses of one name that are tried.
ADDRESSES_MAX = 4

_TOKEN_BYTES = 8

# Called after a successful dial: the address as given, and the peer.
Dialled = Callable[[str, Peer], None]
# Called after a failed dial: the address, and the reason.
Failed = Callable[[str, str], None]


class LinkTarget(NamedTuple):
    """Address to dial, and whether to use TLS."""

    host: str
    port: int
    is_tls: bool = False


class Caution(NamedTuple):
    """Security settings of a dialler."""

    is_plain_allowed: bool = False
    # File of trusted CA certificates; empty: the system's own.
    tls_ca: str = ""


class Dialler:
    """Dials of one service."""

    def __init__(self, turn: Turn, poll: Poll, on_dialled: Dialled, on_failed: Failed) -> None:
        self._turn = turn
        self._poll = poll
        self._on_dialled = on_dialled
        self._on_failed = on_failed
        self._loop = asyncio.get_running_loop()
        self._dials: dict[str, asyncio.Task[None]] = {}
        # Tasks that carry the bytes of established TLS links.
        self._carrying: set[asyncio.Task[None]] = set()
        self._caution = Caution()
        self._context: ssl.SSLContext | None = None

    def change(self, caution: Caution) -> None:
        """Use these settings for later dials.

        Raises:
            BadOption: unusable certificates; the settings stay unchanged.
        """
        self._context = client_context(caution.tls_ca)
        self._caution = caution

    def dial(self, address: str, target: LinkTarget) -> None:
        """Dial a gateway unless a dial to it is running; a callback reports the result."""
        if address in self._dials:
            return
        if len(self._dials) >= DIALS_MAX:
            problem = f"{DIALS_MAX} dials are under way already"
            self._loop.call_soon(self._on_failed, address, problem)
            return
        self._dials[address] = self._loop.create_task(self._dial(address, target))

    async def close(self) -> None:
        """Cancel all dials and all TLS links."""
        tasks = [*self._dials.values(), *self._carrying]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _dial(self, address: str, target: LinkTarget) -> None:
        try:
            async with asyncio.timeout(DIAL_S):
                sock = await self._connected(target)
                pump = await self._encrypted(sock, target) if target.is_tls else None
        except TimeoutError:
            self._on_failed(address, f"no answer within {DIAL_S:g} s")
        except (OSError, NotAllowed) as error:
            self._on_failed(address, _why(error))
        else:
            self._enter(address, sock if pump is None else self._inner(pump, sock))
        finally:
            self._dials.pop(address, None)

    async def _connected(self, target: LinkTarget) -> socket.socket:
        found = await self._loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        problem: Exception = Unreachable("the host name has no address")
        for family, _, _, _, where in found[:ADDRESSES_MAX]:
            try:
                self._check_plain(where[0], target)
                async with asyncio.timeout(DIAL_S / min(len(found), ADDRESSES_MAX)):
                    return await self._connect(family, where)
            except (OSError, NotAllowed) as error:
                problem = error
        raise problem

    async def _connect(self, family: int, where: tuple[object, ...]) -> socket.socket:
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            prepare(sock)
            await self._loop.sock_connect(sock, where)
        except BaseException:
            sock.close()
            raise
        return sock

    def _check_plain(self, host: object, target: LinkTarget) -> None:
        if target.is_tls or self._caution.is_plain_allowed:
            return
        # A link-local address ends with "%" and the name of its interface.
        if not ipaddress.ip_address(str(host).partition("%")[0]).is_loopback:
            raise NotAllowed(
                f"{host} is another machine, where links need tls://, or mesh.plain = 'allowed'"
            )

    async def _encrypted(self, sock: socket.socket, target: LinkTarget) -> Pump:
        try:
            if self._context is None:
                self._context = client_context("")
            pump = Pump(sock, self._context, target.host)
            await pump.shake_hands()
        except BaseException:
            sock.close()
            raise
        return pump

    def _inner(self, pump: Pump, sock: socket.socket) -> socket.socket:
        """Return the plain end of a socket pair whose other end is carried over TLS."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        task = self._loop.create_task(_carry(pump, ours))
        self._carrying.add(task)

        def done(task: asyncio.Task[None]) -> None:
            self._carrying.discard(task)
            # Here, because a task that is cancelled before its first step runs no `finally`.
            ours.close()
            sock.close()

        task.add_done_callback(done)
        return theirs

    def _enter(self, address: str, sock: socket.socket) -> None:
        """Add the remote gateway as a peer."""
        token = int.from_bytes(os.urandom(_TOKEN_BYTES), "little")
        self._turn.begin()
        try:
            peer = TcpDoor(self._turn, self._poll, sock.fileno()).open(token)
            sock.detach()
            self._on_dialled(address, peer)
        except OSError as error:
            sock.close()
            self._on_failed(address, _why(error))
        finally:
            self._turn.flush()


def client_context(tls_ca: str) -> ssl.SSLContext:
    """Return the TLS context for links: 1.2 or later, the certificate must match the host.

    Raises:
        BadOption: unreadable or invalid file of CA certificates.
    """
    try:
        context = ssl.create_default_context(cafile=tls_ca or None)
    except OSError as error:
        raise BadOption(f"mesh.tls_ca {tls_ca!r}: {error.strerror or error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


async def _carry(pump: Pump, inner: socket.socket) -> None:
    """Carry bytes until either side ends; the link notices the end by itself."""
    try:
        await pump.carry(inner)
    except* OSError as errors:
        reasons = ", ".join(_why(error) for error in errors.exceptions)
        _log.debug("the TLS connection of a link ended: %s", reasons)


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate not accepted: {error.verify_message}"
    if isinstance(error, ConnectionError) and error.errno is not None:
        # The system's own text: each event loop has a different one.
        return os.strerror(error.errno)
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
