"""Where connections can be reached by lanes: at the host that they come from, and nowhere else.

No two connections share an address.
"""

from collections.abc import Callable

from weft.broker.service import Peer
from weft.errors import BadOption, NotKnown, NotYours
from weft.wire.lane_addresses import PORT_MAX, written


class LaneClaims:
    """Who listens where; `look` says from which host a connection comes, or nothing."""

    def __init__(self, look: Callable[[Peer], str]) -> None:
        self._look = look
        self._hosts: dict[int, str] = {}
        self._ports: dict[int, int] = {}
        self._owners: dict[tuple[str, int], int] = {}

    def host(self, peer: Peer) -> str:
        """From which host a connection comes; empty if that cannot be seen."""
        host = self._hosts.get(peer.number)
        if host is None:
            host = self._hosts[peer.number] = self._look(peer)
        return host

    def claim(self, peer: Peer, port: int) -> str:
        """The address of a connection that listens at a port: its own from now on, and its only.

        Raises:
            BadOption: there is no such port.
            NotKnown: nobody sees from where it is connected.
            NotYours: the address is another connection's.
        """
        if not 1 <= port <= PORT_MAX:
            raise BadOption(f"port {port} is not in 1 … {PORT_MAX}")
        host = self.host(peer)
        address = written(host, port)
        if not address:
            raise NotKnown("the address of this connection cannot be seen here")
        if self._owners.setdefault((host, port), peer.number) != peer.number:
            raise NotYours(f"{address} is the address of another connection")
        if self._ports.get(peer.number, port) != port:
            del self._owners[(host, self._ports[peer.number])]
        self._ports[peer.number] = port
        return address

    def forget(self, peer: Peer) -> None:
        """A connection is over: its address is free again."""
        host = self._hosts.pop(peer.number, "")
        port = self._ports.pop(peer.number, None)
        if port is not None:
            del self._owners[(host, port)]
