"""OKs and ERRORs that wait until a route is back at the gateway.

A subscriber that got its OK must not miss a message from there on, so the OK is delayed while
matching messages bypass the gateway.
"""

from weft.broker.service import Peer, Service
from weft.lanes.route_state import LaneRoute


class _Held:
    def __init__(self) -> None:
        self.routes: set[tuple[int, bytes]] = set()
        self.frames: list[bytes] = []


class LaneAnswers:
    """Held replies by peer, and the routes that each peer waits for."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._held: dict[int, _Held] = {}

    def __contains__(self, peer: Peer) -> bool:
        return peer.number in self._held

    def wait(self, peer: Peer, route: LaneRoute) -> None:
        """Hold the replies of a peer until a route is back."""
        self._held.setdefault(peer.number, _Held()).routes.add(route.key)
        route.waiters.add(peer.number)

    def hold(self, peer: Peer, frames: bytes) -> None:
        """Add frames to a peer's held replies, in order."""
        self._held[peer.number].frames.append(frames)

    def release(self, route: LaneRoute) -> None:
        """Send the held replies of peers that waited only for this route, which is back or gone."""
        for number in route.waiters:
            held = self._held.get(number)
            if held is None:
                continue
            held.routes.discard(route.key)
            if not held.routes:
                del self._held[number]
                peer = self._service.peers.get(number)
                if peer is not None and held.frames:
                    peer.owe(b"".join(held.frames))
        route.waiters.clear()

    def forget(self, peer: Peer) -> None:
        """Drop the held replies of a peer that has ended."""
        self._held.pop(peer.number, None)
