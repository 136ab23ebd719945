"""Answers that wait until a route is back at the gateway.

Whoever is told that its subscription counts must miss nothing from there on, so it is told only
once nothing goes past the gateway that it should hear.
"""

from weft.broker.service import Peer, Service
from weft.lanes.route_state import LaneRoute


class _Held:
    def __init__(self) -> None:
        self.routes: set[tuple[int, bytes]] = set()
        self.frames: list[bytes] = []


class LaneAnswers:
    """Who waits for which routes, and for what."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._held: dict[int, _Held] = {}

    def __contains__(self, peer: Peer) -> bool:
        return peer.number in self._held

    def wait(self, peer: Peer, route: LaneRoute) -> None:
        """Let a peer wait for a route to be back."""
        self._held.setdefault(peer.number, _Held()).routes.add(route.key)
        route.waiters.add(peer.number)

    def hold(self, peer: Peer, frames: bytes) -> None:
        """Owe these to a peer that waits, in this order."""
        self._held[peer.number].frames.append(frames)

    def release(self, route: LaneRoute) -> None:
        """A route is back, or gone: whoever waited for nothing else gets its answers."""
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
        """A peer is over, and waits no more."""
        self._held.pop(peer.number, None)
