"""WebSocket downlink of a tunnel, over which its client also sends: `/{service}/ws?new=1`.

It uses `weft.json` like any other WebSocket, but every datagram has an id, and the tunnel outlives
the connection: `/{service}/ws?tunnel=ID&last=ID` continues after the last received id. Only a
client that closes it properly, because it is done or its page is left, ends the tunnel with it.
"""

from websockets.frames import CloseCode
from websockets.server import ServerProtocol

from weft.broker.handshake import ConnectRequest, identify
from weft.errors import Silent, UnexpectedFrame, WeftError
from weft.transports.http.connection import HttpDoor
from weft.transports.http.exchange import Request
from weft.transports.http.server import HttpServer, bearer
from weft.transports.json.datagrams import message_datagram, text_of
from weft.transports.tunnel.attachment import Attachment, DownlinkOwner, own_datagram
from weft.transports.tunnel.registry import Tunnels, wanted
from weft.transports.tunnel.replay_buffer import Item, Own
from weft.transports.tunnel.tunnel import Tunnel
from weft.transports.websocket.json_messages import SUBPROTOCOL
from weft.transports.websocket.websocket import (
    PING,
    TEXT,
    WebSocket,
    close_code,
    framed,
    open_socket,
)
from weft.wire.frames import parse

# Close codes of a client that will not reattach.
_LEAVING = (CloseCode.NORMAL_CLOSURE, CloseCode.GOING_AWAY)


class TunnelSocket(Attachment):
    """One WebSocket, attached to a tunnel."""

    __slots__ = ("_house", "_is_asked", "_owner", "_path", "_socket")

    hears = True

    def __init__(self, house: HttpServer) -> None:
        super().__init__()
        self._house = house
        self._owner: DownlinkOwner | None = None
        self._path = ""
        self._socket: WebSocket | None = None
        # A ping was sent, and nothing was received since.
        self._is_asked = False

    def answer(self, door: HttpDoor, checked: ServerProtocol) -> bytes:
        """Complete a handshake; return unread bytes of the connection, for received()."""
        socket, unread = open_socket(self._house, door, checked, self)
        if socket.stream.is_open:
            self._socket = socket
        return unread

    def received(self, data: bytes) -> None:
        """Handle bytes that arrived before it was attached to a tunnel."""
        if data and self._socket is not None:
            self._socket.received(data)

    # Interface for the tunnel.

    @property
    def keepalive_s(self) -> float:
        """Interval of silence after which a ping is sent."""
        ping_s: float = self._house.limits.ping_s
        return ping_s

    @property
    def has_room(self) -> bool:
        """Return whether more can be sent now."""
        return self._socket is not None and self._socket.has_room

    @property
    def is_over(self) -> bool:
        """Return whether the WebSocket is closed."""
        return self._socket is None

    def join(self, owner: DownlinkOwner) -> None:
        """Attach to a tunnel."""
        self._owner = owner
        self._path = owner.place.path.decode()

    def let_go(self) -> None:
        """Detach from the tunnel."""
        self._owner = None

    def open(self, facts: bytes) -> None:
        """Send the description of the tunnel."""
        self._send(framed(TEXT, facts))

    def tell(self, items: list[Item]) -> None:
        """Send datagrams, one per message; those for many peers are encoded once."""
        said = [self._own(item) if isinstance(item, Own) else self._said(item) for item in items]
        self._send(b"".join(said))

    def keep_alive(self) -> None:
        """Send a ping; abort if nothing was received since the last one."""
        if self._is_asked:
            self._house.refused(Silent.__name__)
            self.abort()
        else:
            self._is_asked = True
            self._send(PING)

    def close(self, reason: str, error: WeftError | None = None) -> None:
        """Close with the error or the reason."""
        self.let_go()
        if self._socket is not None:
            self._socket.close(close_code(error), str(error or reason))

    def abort(self) -> None:
        """Close at once."""
        if self._socket is not None:
            self._socket.stream.close()

    def rest(self) -> None:
        """Pause input."""
        if self._socket is not None:
            self._socket.stream.pause()

    def go_on(self) -> None:
        """Resume input."""
        self._is_asked = False
        if self._socket is not None:
            self._socket.stream.resume()

    # Interface of a WebSocket's listener.

    def message(self, data: bytes, is_text: bool) -> None:
        """Handle a message."""
        self._is_asked = False
        owner = self._owner
        if owner is None:
            return
        if is_text:
            owner.hear(data)
        else:
            error = UnexpectedFrame(f"{SUBPROTOCOL} is text")
            self._house.charge(owner.peer, error)
            owner.lost()
            if self._socket is not None:
                self._socket.close(CloseCode.UNSUPPORTED_DATA, str(error))

    def alive(self) -> None:
        """Record that the client was active."""
        self._is_asked = False

    def pay(self) -> None:
        """Charge a control frame or a fragment."""
        if self._owner is not None:
            self._house.pinged(self._owner.peer)

    def drained(self) -> None:
        """Called when there is room again."""
        if self._owner is not None:
            self._owner.pour()

    def gone(self) -> None:
        """Called when it is closed: end the tunnel, or await reattachment, by the close code."""
        socket, self._socket = self._socket, None
        if self._owner is None:
            return
        if socket is not None and socket.farewell in _LEAVING:
            self._owner.left()
        else:
            self._owner.lost()

    def _send(self, data: bytes) -> None:
        if self._socket is not None:
            self._socket.send(data)

    def _own(self, item: Own) -> bytes:
        return framed(TEXT, text_of(own_datagram(item, self._path)))

    def _said(self, frames: bytes) -> bytes:
        # The encoding is the same as without a tunnel.
        return self._house.shared.said(SUBPROTOCOL, frames, _message)


class TunnelSockets:
    """WebSockets of a service that belong to tunnels."""

    def __init__(self, house: HttpServer, tunnels: Tunnels) -> None:
        self._house = house
        self._tunnels = tunnels

    def open(self, request: Request, door: HttpDoor, checked: ServerProtocol) -> None:
        """Complete a checked handshake: open a tunnel, or reattach to one.

        Raises:
            BadOption: neither or both of `new` and `tunnel`.
            NotYours: the key is not the tunnel's.
            TooMany: the limit of tunnels is reached.
            WeftError: the client was refused.
        """
        known_by = wanted(request)
        known = self._tunnels.known(known_by)
        if known is not None:
            self._check_owner(known, request)
        tunnel = known or self._tunnels.new(request, "tunnel websocket")
        socket = TunnelSocket(self._house)
        unread = socket.answer(door, checked)
        if socket.is_over:
            if known is None:
                tunnel.left()
        elif known is None:
            tunnel.open(socket, is_renewed=known_by != "")
        else:
            tunnel.attach(socket, request.query.get("last", ""))
        socket.received(unread)

    def _check_owner(self, tunnel: Tunnel, request: Request) -> None:
        """Authenticate a client that reattaches, like one that opens a tunnel."""
        key, ticket = bearer(request), request.query.get("ticket", "")
        owner = identify(self._house.service, ConnectRequest(key=key, ticket=ticket))
        if owner is None:
            tunnel.check_key(key)
        else:
            tunnel.check_owner(owner)


def is_wanted(request: Request) -> bool:
    """Return whether a WebSocket request is for a tunnel."""
    return "new" in request.query or "tunnel" in request.query


def _message(frame: bytes) -> bytes:
    return framed(TEXT, text_of(message_datagram(frame, parse(frame))))
