"""Lane addresses of connections: always at the host that a connection comes from.

No two connections share an address.
"""

from collections.abc import Callable

from weft.broker.service import Peer
from weft.errors import BadOption, NotKnown, NotYours
from weft.wire.lane_addresses import PORT_MAX, written


class LaneClaims:
    """Hosts and lane ports of connections; `look` returns a connection's host, or an empty text."""

    def __init__(self, look: Callable[[Peer], str]) -> None:
        self._look = look
        self._hosts: dict[int, str] = {}
        self._ports: dict[int, int] = {}
        self._owners: dict[tuple[str, int], int] = {}

    def host(self, peer: Peer) -> str:
        """The host that a connection comes from; empty if unknown."""
        host = self._hosts.get(peer.number)
        if host is None:
            host = self._hosts[peer.number] = self._look(peer)
        return host

    def claim(self, peer: Peer, port: int) -> str:
        """Register the port of a connection's lane listener, and return the address.

        A connection has at most one address.

        Raises:
            BadOption: invalid port.
            NotKnown: the host of the connection is unknown.
            NotYours: another connection has registered the address.
        """
        if not 1 <= port <= PORT_MAX:
            raise BadOption(f"port {port} is not in 1 … {PORT_MAX}")
        host = self.host(peer)
        address = written(host, port)
        if not address:
            raise NotKnown("the address of this connection is unknown to the gateway")
        if self._owners.setdefault((host, port), peer.number) != peer.number:
            raise NotYours(f"{address} is the address of another connection")
        if self._ports.get(peer.number, port) != port:
            del self._owners[(host, self._ports[peer.number])]
        self._ports[peer.number] = port
        return address

    def forget(self, peer: Peer) -> None:
        """Release the address of a connection that has ended."""
        host = self._hosts.pop(peer.number, "")
        port = self._ports.pop(peer.number, None)
        if port is not None:
            del self._owners[(host, port)]
