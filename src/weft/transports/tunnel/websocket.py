"""A WebSocket that a tunnel is told by, and by which its client speaks: `/{service}/ws?new=1`.

It speaks `weft.json` as any other does, but what it is told has ids, and the tunnel outlives it:
`/{service}/ws?tunnel=ID&last=ID` goes on where it was cut. Only a client that closes it properly,
because it is done or because its page is left, ends the tunnel with it.
"""

from websockets.frames import CloseCode
from websockets.server import ServerProtocol

from weft.broker.handshake import Introduction, identify
from weft.errors import Silent, UnexpectedFrame, WeftError
from weft.transports.http.connection import HttpDoor
from weft.transports.http.exchange import Request
from weft.transports.http.server import House, bearer
from weft.transports.json.datagrams import message_datagram, text_of
from weft.transports.tunnel.attachment import Attachment, Owner, own_datagram
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

# Said by who does not come back.
_LEAVING = (CloseCode.NORMAL_CLOSURE, CloseCode.GOING_AWAY)


class TunnelSocket(Attachment):
    """One WebSocket, and the tunnel that it belongs to for now."""

    __slots__ = ("_house", "_is_asked", "_owner", "_path", "_socket")

    hears = True

    def __init__(self, house: House) -> None:
        super().__init__()
        self._house = house
        self._owner: Owner | None = None
        self._path = ""
        self._socket: WebSocket | None = None
        # A ping was sent, and no sign of life came since.
        self._is_asked = False

    def answer(self, door: HttpDoor, checked: ServerProtocol) -> bytes:
        """Answer a handshake; what came on the connection already, for received()."""
        socket, unread = open_socket(self._house, door, checked, self)
        if socket.stream.is_open:
            self._socket = socket
        return unread

    def received(self, data: bytes) -> None:
        """Take in what came before it belonged to a tunnel."""
        if data and self._socket is not None:
            self._socket.received(data)

    # What the tunnel says.

    @property
    def keepalive_s(self) -> float:
        """After how long a silence it is asked if it is still there."""
        ping_s: float = self._house.limits.ping_s
        return ping_s

    @property
    def has_room(self) -> bool:
        """Say if more can be told now."""
        return self._socket is not None and self._socket.has_room

    @property
    def is_over(self) -> bool:
        """Say if it is closed."""
        return self._socket is None

    def join(self, owner: Owner) -> None:
        """Belong to a tunnel from now on."""
        self._owner = owner
        self._path = owner.place.path.decode()

    def let_go(self) -> None:
        """Belong to nobody."""
        self._owner = None

    def open(self, facts: bytes) -> None:
        """Tell which tunnel it is."""
        self._send(framed(TEXT, facts))

    def tell(self, items: list[Item]) -> None:
        """Tell of datagrams, each a message: what goes to many is put into words once."""
        said = [self._own(item) if isinstance(item, Own) else self._said(item) for item in items]
        self._send(b"".join(said))

    def keep_alive(self) -> None:
        """Ask for a sign of life; whoever gave none since the last time is gone."""
        if self._is_asked:
            self._house.refused(Silent.__name__)
            self.abort()
        else:
            self._is_asked = True
            self._send(PING)

    def close(self, reason: str, error: WeftError | None = None) -> None:
        """Close it, and say why."""
        self.let_go()
        if self._socket is not None:
            self._socket.close(close_code(error), str(error or reason))

    def abort(self) -> None:
        """Close it at once."""
        if self._socket is not None:
            self._socket.stream.close()

    def rest(self) -> None:
        """Take nothing in for now."""
        if self._socket is not None:
            self._socket.stream.pause()

    def go_on(self) -> None:
        """Take in again."""
        self._is_asked = False
        if self._socket is not None:
            self._socket.stream.resume()

    # What the WebSocket says.

    def message(self, data: bytes, is_text: bool) -> None:
        """Say what a message says."""
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
        """A sign of life came."""
        self._is_asked = False

    def pay(self) -> None:
        """Let a frame cost something that is no message by itself."""
        if self._owner is not None:
            self._house.pinged(self._owner.peer)

    def drained(self) -> None:
        """There is room again."""
        if self._owner is not None:
            self._owner.pour()

    def gone(self) -> None:
        """It is closed: by who left, or by who may come back."""
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
        # The same words as for those who have no tunnel.
        return self._house.shared.said(SUBPROTOCOL, frames, _message)


class TunnelSockets:
    """The WebSockets of a service that belong to tunnels."""

    def __init__(self, house: House, tunnels: Tunnels) -> None:
        self._house = house
        self._tunnels = tunnels

    def open(self, request: Request, door: HttpDoor, checked: ServerProtocol) -> None:
        """Answer a handshake that was checked: open a tunnel by it, or come back to one.

        Raises:
            BadOption: the request does not say which.
            NotYours: it shows another key than the tunnel's.
            TooMany: there are as many as there may be.
            WeftError: whoever asks is not let in.
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
        """Have whoever comes back show who it is, as whoever opens one does."""
        key, ticket = bearer(request), request.query.get("ticket", "")
        owner = identify(self._house.service, Introduction(key=key, ticket=ticket))
        if owner is None:
            tunnel.check_key(key)
        else:
            tunnel.check_owner(owner)


def is_wanted(request: Request) -> bool:
    """Say if a request for a WebSocket speaks of a tunnel."""
    return "new" in request.query or "tunnel" in request.query


def _message(frame: bytes) -> bytes:
    return framed(TEXT, text_of(message_datagram(frame, parse(frame))))
