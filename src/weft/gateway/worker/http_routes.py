"""HTTP endpoints of a service, by their name in the path: `/{service}/{door}`."""

from weft.errors import BadOption
from weft.transports.bayeux.handler import BayeuxDoor
from weft.transports.http.connection import HttpDoor
from weft.transports.http.event_stream import Streams
from weft.transports.http.exchange import Exchange
from weft.transports.http.publish_request import Callers
from weft.transports.http.server import HttpServer
from weft.transports.http.tickets import TicketOffice
from weft.transports.middleman.websocket import MiddlemanDoor
from weft.transports.tunnel.registry import Tunnels
from weft.transports.tunnel.uplink import Events
from weft.transports.tunnel.websocket import TunnelSockets, is_wanted
from weft.transports.websocket import binary_frames, echo, json_messages
from weft.transports.websocket.binary_frames import FrameSocket
from weft.transports.websocket.echo import Echoes
from weft.transports.websocket.json_messages import DatagramSocket
from weft.transports.websocket.peer import PeerSocket
from weft.transports.websocket.websocket import handshake


def furnish(house: HttpServer) -> None:
    """Register all endpoints with the HTTP server of a service."""
    callers = Callers(house)
    house.doors["bayeux"] = BayeuxDoor(house).answer
    house.doors["publish"] = callers.publish
    house.doors["request"] = callers.request
    house.doors["ticket"] = TicketOffice(house).answer
    house.doors["stream"] = Streams(house).answer
    house.doors["middleman"] = MiddlemanDoor(house).answer
    tunnels = Tunnels(house)
    house.doors["tunnel"] = tunnels.answer
    house.doors["ws"] = WebSockets(house, tunnels).answer
    house.doors["events"] = Events(house, tunnels).answer
    house.doors[echo.DOOR] = Echoes(house).answer


class WebSockets:
    """`/{service}/ws`: JSON datagrams, optionally over a tunnel; or binary frames."""

    def __init__(self, house: HttpServer, tunnels: Tunnels) -> None:
        self._house = house
        self._tunnel_sockets = TunnelSockets(house, tunnels)

    def answer(self, exchange: Exchange, door: HttpDoor) -> None:
        """Open a WebSocket.

        Raises:
            WeftError: Not permitted, or an invalid request.
        """
        known = (json_messages.SUBPROTOCOL, binary_frames.SUBPROTOCOL)
        checked = handshake(self._house, exchange, known)
        if checked is None:
            return
        request = exchange.request
        has_frames = checked.subprotocol == binary_frames.SUBPROTOCOL
        if is_wanted(request):
            if has_frames:
                raise BadOption(f"a tunnel needs the subprotocol {json_messages.SUBPROTOCOL}")
            self._tunnel_sockets.open(request, door, checked)
            return
        speaker: PeerSocket
        speaker = FrameSocket(self._house) if has_frames else DatagramSocket(self._house, request)
        speaker.open(door, checked)
