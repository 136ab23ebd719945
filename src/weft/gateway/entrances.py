"""The doors for HTTP of a service, by the name that each has in a path: `/{service}/{door}`."""

from weft.doors import datagram_socket, echo, frame_socket
from weft.doors.bayeux import BayeuxDoor
from weft.doors.caller import Callers
from weft.doors.datagram_socket import DatagramSocket
from weft.doors.echo import Echoes
from weft.doors.events import Events
from weft.doors.exchange import Exchange
from weft.doors.frame_socket import FrameSocket
from weft.doors.house import House
from weft.doors.http import HttpDoor
from weft.doors.live import Streams
from weft.doors.middleman_socket import MiddlemanDoor
from weft.doors.peer_socket import PeerSocket
from weft.doors.tickets import TicketOffice
from weft.doors.tunnel_socket import TunnelSockets, is_wanted
from weft.doors.tunnels import Tunnels
from weft.doors.websocket import handshake
from weft.errors import BadOption


def furnish(house: House) -> None:
    """Give a house all its doors."""
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
    """`/{service}/ws`: datagrams, on a tunnel if that is wanted; or frames."""

    def __init__(self, house: House, tunnels: Tunnels) -> None:
        self._house = house
        self._tunnel_sockets = TunnelSockets(house, tunnels)

    def answer(self, exchange: Exchange, door: HttpDoor) -> None:
        """Open a WebSocket.

        Raises:
            WeftError: whoever asks is not let in, or wants what cannot be.
        """
        known = (datagram_socket.SUBPROTOCOL, frame_socket.SUBPROTOCOL)
        checked = handshake(self._house, exchange, known)
        if checked is None:
            return
        request = exchange.request
        has_frames = checked.subprotocol == frame_socket.SUBPROTOCOL
        if is_wanted(request):
            if has_frames:
                raise BadOption(f"a tunnel speaks {datagram_socket.SUBPROTOCOL}")
            self._tunnel_sockets.open(request, door, checked)
            return
        speaker: PeerSocket
        speaker = FrameSocket(self._house) if has_frames else DatagramSocket(self._house, request)
        speaker.open(door, checked)
