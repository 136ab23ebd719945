"""TLS termination for the services: decrypted connections enter the front like any other."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable

from weft.errors import BadGreeting, BadOption, Overloaded, TooSlow
from weft.gateway.config.settings import Tls
from weft.gateway.front.rejections import Rejections
from weft.gateway.front.remote_address import name_after
from weft.transports.tls_relay import Pump

_log = logging.getLogger(__name__)

Enter = Callable[[socket.socket, str], None]


class TlsConnections:
    """TLS connections of one gateway, one task each."""

    def __init__(self, tls: Tls, refusals: Rejections) -> None:
        """Load the certificate and its key.

        Raises:
            BadOption: Unusable certificate or key.
        """
        self._refusals = refusals
        # With the socket of each: a task cancelled before its first step does not close it.
        self._tasks: dict[asyncio.Task[None], socket.socket] = {}
        self._pumps: dict[asyncio.Task[None], Pump] = {}
        # Oldest first, so that slow ones give way.
        self._handshakes: dict[asyncio.Task[None], str] = {}
        self.change(5.0, 4096)
        self.load(tls)

    def __len__(self) -> int:
        return len(self._tasks)

    def load(self, tls: Tls) -> None:
        """Load the certificate and its key for new connections; may be called again.

        Raises:
            BadOption: Unusable certificate or key; the old ones stay in use.
        """
        self._context = server_context(tls)

    def change(self, limit_s: float, pending_max: int) -> None:
        """Set the limits of handshakes."""
        self._limit_s = limit_s
        self._pending_max = pending_max

    def take(self, sock: socket.socket, peer: str, enter: Enter) -> None:
        """Do the handshake, then `enter` a socket that carries the decrypted bytes."""
        if len(self._handshakes) >= self._pending_max:
            self._crowd_out()
        pump = Pump(sock, self._context)
        task = asyncio.get_running_loop().create_task(self._serve(pump, peer, enter))
        self._pumps[task] = pump
        self._handshakes[task] = peer
        self._tasks[task] = sock
        task.add_done_callback(self._done)

    async def drain(self, within_s: float, stall_s: float) -> None:
        """Wait for connections to end after their services have, within the timeout.

        Connections without traffic for `stall_s` are closed.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + within_s
        while self._tasks and (left_s := until - loop.time()) > 0:
            before = {task: pump.carried for task, pump in self._pumps.items()}
            _, waiting = await asyncio.wait(self._tasks, timeout=min(stall_s, left_s))
            if left_s > stall_s:
                for task in waiting:
                    if task in before and self._pumps[task].carried == before[task]:
                        task.cancel()

    async def close(self) -> None:
        """Close all connections immediately."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _serve(self, pump: Pump, peer: str, enter: Enter) -> None:
        if await self._is_greeted(pump, peer):
            ours, theirs = socket.socketpair()
            ours.setblocking(False)
            theirs.setblocking(False)
            with ours:
                name_after(ours, peer)
                enter(theirs, peer)
                await _carried(pump, ours, peer)

    async def _is_greeted(self, pump: Pump, peer: str) -> bool:
        """Do the handshake; return False if it failed, which is counted."""
        task = asyncio.current_task()
        try:
            async with asyncio.timeout(self._limit_s):
                await pump.shake_hands()
        except TimeoutError:
            late = TooSlow(f"the TLS handshake was not complete after {self._limit_s} s")
            self._refusals.count(late, peer)
            return False
        except OSError as error:
            self._refusals.count(BadGreeting(f"the TLS handshake failed: {error}"), peer)
            return False
        finally:
            if task is not None:
                self._handshakes.pop(task, None)
        return True

    def _crowd_out(self) -> None:
        oldest = next(iter(self._handshakes))
        peer = self._handshakes.pop(oldest)
        crowd = f"more than {self._pending_max} TLS handshakes are not complete"
        self._refusals.count(Overloaded(crowd), peer)
        oldest.cancel()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task).close()
        del self._pumps[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a TLS connection failed", exc_info=error)


def server_context(tls: Tls) -> ssl.SSLContext:
    """Return a context for TLS 1.2 or 1.3 with this certificate.

    Raises:
        BadOption: Unusable certificate or key.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        # Without a password callback OpenSSL would ask on the terminal.
        context.load_cert_chain(tls.cert, tls.key, password=lambda: "")
    except OSError as error:
        what = error.strerror or str(error)
        raise BadOption(f"tls.cert {tls.cert!r} with tls.key {tls.key!r}: {what}") from error
    return context


async def _carried(pump: Pump, inner: socket.socket, peer: str) -> None:
    """Carry bytes until either side ends; resets are common and only logged."""
    try:
        await pump.carry(inner)
    except* OSError as errors:
        reasons = ", ".join(str(error) for error in errors.exceptions)
        _log.debug("TLS connection ended: %s", reasons, extra={"peer": peer})
