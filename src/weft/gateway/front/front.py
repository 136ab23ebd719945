"""Front: accepts connections, classifies them by their first bytes, and passes them on unread.

No step waits for one connection while another is ready: peeking, refusing and passing on are single
steps. HTTP and TLS, which take time, are tasks elsewhere. Until then a connection is a plain file
descriptor: a socket object for each would cost more than all other steps.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Protocol

from weft.errors import (
    BadGreeting,
    Draining,
    NotAllowed,
    Overloaded,
    ProtocolError,
    TooSlow,
    UsageError,
    WeftError,
)
from weft.gateway.config.settings import Settings, SocketAddress, is_loopback
from weft.gateway.front.fd_limits import ConnectionLimits
from weft.gateway.front.fd_passing import AS_FRAMES, AS_HTTP, AS_LINK
from weft.gateway.front.listener import Accepted, PortListener
from weft.gateway.front.pending_connections import Lobby, Visitor
from weft.gateway.front.rejections import Rejections
from weft.gateway.front.sniff import (
    DOOR,
    GREETING,
    HANDSHAKE,
    LINK,
    MORE,
    MORE_HTTP,
    Classification,
    look,
)
from weft.gateway.service_pool_api import Services
from weft.transports.loop.syscalls import NOT_NOW, peek

_NOT_NOW = NOT_NOW
_MORE = MORE
_MORE_HTTP = MORE_HTTP
_DOOR = DOOR
_GREETING = GREETING
_HANDSHAKE = HANDSHAKE
_LINK = LINK
_HEAD_END = b"\r\n\r\n"


class HttpHandler(Protocol):
    """HTTP server of the gateway."""

    # Called with a connection that has sent the beginning of its next request.
    on_request: Callable[[socket.socket, str], None] | None

    def take(self, sock: socket.socket, peer: str) -> None:
        """Take over a connection that has sent the beginning of a request."""


class TlsTermination(Protocol):
    """TLS termination."""

    def take(
        self, sock: socket.socket, peer: str, enter: Callable[[socket.socket, str], None]
    ) -> None:
        """Take over a connection that began a handshake; pass the decrypted one to `enter`."""


class Front:
    """One listening port and its connections until they are passed on."""

    def __init__(
        self,
        services: Services,
        refusals: Rejections,
        web: HttpHandler,
        encryption: TlsTermination | None,
    ) -> None:
        self._services = services
        self._refusals = refusals
        self._web = web
        self._encryption = encryption
        self._loop = asyncio.get_running_loop()
        self._lobby = Lobby(self._look, self._give_up)
        services.on_return = self._take_back
        web.on_request = self.enter

    def open(self, settings: Settings, room: ConnectionLimits) -> None:
        """Start to listen.

        Raises:
            UsageError: Cannot listen on the address.
        """
        self.change(settings, room)
        try:
            self._listener = PortListener(settings.address, self._take)
        except UsageError:
            self._lobby.close()
            raise

    def change(self, settings: Settings, room: ConnectionLimits) -> None:
        """Apply new settings."""
        self._limits = settings.limits
        self._greeting_bytes = settings.limits.greeting_bytes
        self._first_bytes = bytearray(self._greeting_bytes)
        self._is_plain_allowed = settings.mesh.plain == "allowed"
        self._room = room
        # Connections that may be passed on before the services are asked for their number again.
        self._places = 0

    @property
    def address(self) -> SocketAddress:
        """Actual listen address."""
        return self._listener.address

    @property
    def is_open(self) -> bool:
        """Return whether new connections are accepted."""
        return self._listener.is_open

    @property
    def accepted(self) -> int:
        """Number of accepted connections."""
        return self._listener.accepted

    @property
    def pauses(self) -> int:
        """Number of times that accepting paused."""
        return self._listener.pauses

    @property
    def pending(self) -> int:
        """Number of connections that are not yet classified."""
        return len(self._lobby)

    def enter(self, sock: socket.socket, peer: str) -> None:
        """Take over a connection without TLS, or decrypted."""
        deadline = self._loop.time() + self._limits.greeting_s
        self._look(Visitor(sock.detach(), peer, deadline, is_encrypted=False), False)

    def close(self) -> None:
        """Stop accepting, and refuse pending connections."""
        if not self.is_open:
            return
        self._listener.close()
        for visitor in self._lobby.empty():
            self._refuse(visitor, Draining("the gateway is closing down"))
        self._lobby.close()

    def _take(self, accepted: list[Accepted]) -> None:
        deadline = self._loop.time() + self._limits.greeting_s
        is_encrypted = self._encryption is not None
        for fd, peer in accepted:
            self._look(Visitor(fd, peer, deadline, is_encrypted=is_encrypted), False)

    def _take_back(self, fd: int) -> None:
        """Classify a connection again: its last request was for a service, the next is not."""
        deadline = self._loop.time() + self._limits.greeting_s
        self._look(Visitor(fd, "", deadline, is_encrypted=False), False)

    def _look(self, visitor: Visitor, is_all: bool) -> None:
        """Classify a connection by its first bytes; `is_all` if no more will come."""
        length = peek(visitor.fd, self._first_bytes, self._greeting_bytes)
        if length == _NOT_NOW:
            # Most clients send their CONNECT in one write, which then shows its size.
            self._wait(visitor, 1)
            return
        if length <= 0:
            # The peer closed or reset the connection.
            self._lobby.forget(visitor)
            self._refusals.left(socket.socket(fileno=visitor.fd))
            return
        self._length = length
        try:
            verdict = look(self._first_bytes, length, self._greeting_bytes)
            if is_all and verdict.want == _MORE:
                raise BadGreeting(f"the greeting ended after {length} of {verdict.needed} bytes")
            visitor.is_ended = is_all
            visitor.speaks_http = verdict.want in (_MORE_HTTP, _DOOR)
        except ProtocolError as error:
            self._refuse(visitor, error)
        else:
            if is_all and verdict.want == _MORE_HTTP:
                self._web.take(self._released(visitor), visitor.peer)
            else:
                self._follow(visitor, verdict)

    def _follow(self, visitor: Visitor, verdict: Classification) -> None:
        """Pass on or refuse a connection by its classification."""
        want = verdict.want
        if want in (_MORE, _MORE_HTTP):
            self._wait(visitor, verdict.needed)
        elif want == _HANDSHAKE:
            if visitor.is_encrypted and self._encryption is not None:
                self._encryption.take(self._released(visitor), visitor.peer, self.enter)
            else:
                self._refuse(visitor, BadGreeting("this port does not speak TLS"))
        elif visitor.is_encrypted:
            self._refuse(visitor, BadGreeting("this port speaks TLS only"))
        elif want == _LINK:
            if self._is_link_readable(visitor):
                problem = "links from other machines need TLS, or mesh.plain = 'allowed'"
                self._refuse(visitor, NotAllowed(problem))
            else:
                self._hand_over(visitor, verdict.service, AS_LINK)
        elif want == _DOOR and self._lacks_head(visitor, verdict.service):
            visitor.is_for_door = True
            self._wait(visitor, self._length + 1)
        elif want in (_GREETING, _DOOR):
            way = AS_HTTP if visitor.speaks_http else AS_FRAMES
            self._hand_over(visitor, verdict.service, way)
        else:
            self._web.take(self._released(visitor), visitor.peer)

    def _wait(self, visitor: Visitor, needed: int) -> None:
        if not self.is_open:
            self._refuse(visitor, Draining("the gateway is closing down"))
            return
        if visitor not in self._lobby and len(self._lobby) >= self._room.pending:
            # Silent connections must not keep out others.
            crowd = f"more than {self._room.pending} connections wait to be greeted"
            self._refuse(self._lobby.oldest, Overloaded(crowd))
        self._lobby.keep(visitor, needed)

    def _lacks_head(self, visitor: Visitor, service: str) -> bool:
        """Return whether more of a request must arrive before its service may be started."""
        if visitor.is_ended or self._length >= self._greeting_bytes or self._services.has(service):
            return False
        return self._first_bytes.find(_HEAD_END, 0, self._length) < 0

    def _is_link_readable(self, visitor: Visitor) -> bool:
        """Return whether a link would be unencrypted over a network, which is not allowed."""
        if self._is_plain_allowed or self._encryption is not None:
            return False
        host = visitor.peer.rpartition(":")[0]
        return not (host and is_loopback(host))

    def _hand_over(self, visitor: Visitor, service: str, way: int) -> None:
        self._lobby.forget(visitor)
        try:
            if not self.is_open:
                raise Draining("the gateway is closing down")
            if self._places <= 0:
                # Services get connections only from here: free slots can only become more.
                self._places = self._room.connections - self._services.connections
            if self._places <= 0:
                raise Overloaded(f"{self._room.connections} connections are the limit")
            self._services.give(service, visitor.fd, way)
            self._places -= 1
        except WeftError as error:
            self._refusals.refuse(self._released(visitor), error, visitor.peer, way)
        except OSError as error:
            # Starting its service failed.
            problem = f"service {service!r} cannot be started: {error.strerror}"
            self._refuse(visitor, Overloaded(problem))

    def _refuse(self, visitor: Visitor, error: WeftError) -> None:
        way = AS_HTTP if visitor.speaks_http else AS_FRAMES
        self._refusals.refuse(self._released(visitor), error, visitor.peer, way)

    def _released(self, visitor: Visitor) -> socket.socket:
        """Stop waiting for a connection; return its socket, non-blocking."""
        self._lobby.forget(visitor)
        sock = socket.socket(fileno=visitor.fd)
        sock.setblocking(False)
        return sock

    def _give_up(self, visitor: Visitor) -> None:
        """Refuse a connection that timed out; HTTP has more time, and its own response."""
        if visitor.is_for_door:
            self._refuse(visitor, TooSlow("the request took too long"))
            return
        if visitor.speaks_http and self.is_open:
            self._web.take(self._released(visitor), visitor.peer)
            return
        limit_s = self._limits.greeting_s
        self._refuse(visitor, TooSlow(f"the greeting was not complete after {limit_s} s"))
