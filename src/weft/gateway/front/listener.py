"""Listener: accepts connections of one port in batches, and pauses when descriptors run out."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable

from weft.errors import UsageError
from weft.gateway.config.settings import SocketAddress
from weft.transports.loop.syscalls import accept
from weft.transports.tcp import prepare

_log = logging.getLogger(__name__)

# Large batches, because each turn of the loop has a cost; bounded, so that other events run.
_ACCEPT_MAX = 64
_BACKLOG = 4096
# When several connections arrive together, more are about to. After this pause they cost one turn
# of the loop instead of one each, and most have sent their CONNECT. Single connections never wait.
_GATHER_S = 0.001
_PAUSE_S = 0.1
# Pauses within this time of the previous one are not logged.
_LOG_AGAIN_S = 5.0
# The connection at the head of the queue is already broken; the next one need not be.
_PASSING = {errno.ECONNABORTED, errno.EPROTO, errno.EINTR, errno.EPERM}

# File descriptor of a connection, and the address of its peer: host and port.
Accepted = tuple[int, str]


class PortListener:
    """One listening port; passes batches of accepted, non-blocking sockets to `take`."""

    def __init__(self, address: SocketAddress, take: Callable[[list[Accepted]], None]) -> None:
        """Start to listen.

        Raises:
            UsageError: Cannot listen on the address.
        """
        self._loop = asyncio.get_running_loop()
        self._take = take
        self._socket = _listening(address)
        self._is_ipv6 = address.family == socket.AF_INET6
        self._resume: asyncio.TimerHandle | None = None
        self._paused_at = float("-inf")
        self.accepted = 0
        self.pauses = 0
        self.is_open = True
        host, port = self._socket.getsockname()[:2]
        self.address = SocketAddress(host, port)
        self._loop.add_reader(self._socket, self._accept)

    def close(self) -> None:
        """Accept connections that are already established, then close the port."""
        if not self.is_open:
            return
        self.is_open = False
        if self._resume is not None:
            self._resume.cancel()
        self._loop.remove_reader(self._socket)
        for _ in range(_BACKLOG // _ACCEPT_MAX):
            if not self._accept():
                break
        self._socket.close()

    def _accept(self) -> bool:
        """Accept a batch; return False if there was none."""
        taken: list[Accepted] = []
        listening = self._socket.fileno()
        try:
            for _ in range(_ACCEPT_MAX):
                fd, host, port = accept(listening)
                taken.append((fd, f"[{host}]:{port}" if self._is_ipv6 else f"{host}:{port}"))
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno not in _PASSING and self.is_open:
                self._pause(error)
        self.accepted += len(taken)
        if taken:
            self._take(taken)
        if 1 < len(taken) < _ACCEPT_MAX and self.is_open and self._resume is None:
            self._rest(_GATHER_S)
        return bool(taken)

    def _pause(self, error: OSError) -> None:
        """Pause accepting: the port stays readable, so an immediate retry would spin."""
        self.pauses += 1
        now = self._loop.time()
        if now - self._paused_at > _LOG_AGAIN_S:
            _log.warning("%s: accepting paused: %s", self.address, error.strerror)
        self._paused_at = now
        self._rest(_PAUSE_S)

    def _rest(self, seconds: float) -> None:
        self._loop.remove_reader(self._socket)
        self._resume = self._loop.call_later(seconds, self._start_again)

    def _start_again(self) -> None:
        self._resume = None
        self._loop.add_reader(self._socket, self._accept)


def _listening(address: SocketAddress) -> socket.socket:
    sock = socket.socket(address.family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit these options.
        prepare(sock)
        # No TCP_DEFER_ACCEPT: silent connections would fill the kernel's queue, out of our reach.
        sock.bind(address)
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        raise UsageError(f"cannot listen on {address}: {error.strerror}") from error
    return sock
