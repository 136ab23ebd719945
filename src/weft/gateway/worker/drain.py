"""Drain of a service: ends its client connections gracefully before it stops.

A drain waits for clients that read their queued frames, and for those with a request in progress.
It does not wait for a client that reads slower than the pace of a slow consumer, nor for an idle
one that was sent everything.
"""

import asyncio

from weft.broker.replies import end_with, told
from weft.broker.service import Peer, Service
from weft.errors import Draining
from weft.transports.adapter_peer import AdapterPeer
from weft.transports.http.server import HttpServer
from weft.transports.loop.turn import Turn
from weft.wire.frames import Kind
from weft.wire.message.message import Message

# Interval between checks of the remaining clients.
LOOK_S = 0.05

_S = 1_000_000_000
_TEXT = "this gateway is closing down"


def clients_of(service: Service) -> list[Peer]:
    """Return the peers that are not links to other gateways."""
    return [peer for peer in service.peers.values() if peer.carrier is None]


def say_goodbye(service: Service, elsewhere: list[str]) -> None:
    """Send every client a GOODBYE with the addresses of other gateways."""
    facts: dict[str, object] = {"reason": "draining", "text": _TEXT}
    if elsewhere:
        facts["elsewhere"] = elsewhere
    goodbye = Message.from_dict(facts)
    for peer in clients_of(service):
        if not peer.is_greeted:
            end_with(peer, Draining(_TEXT))
            continue
        peer.owe(told(peer, Kind.GOODBYE, b"", b"", goodbye))
        if isinstance(peer.door, AdapterPeer) and not peer.asking and not peer.serving:
            # Close now: the close code makes the page reconnect.
            peer.end(Draining(_TEXT))


def end_client(peer: Peer, problem: str) -> None:
    """End a connection immediately; a client that is behind is sent the reason."""
    outbox = peer.outbox
    if outbox.is_behind() and not peer.is_over and peer.carrier is None:
        outbox.give_up(problem)
        if peer.door is not None:
            peer.door.fall_behind()
    peer.end(Draining(_TEXT))
    if peer.door is not None:
        peer.door.abort()


class StalledClients:
    """Disconnects clients that would delay a drain, until it is stopped.

    Each has `stall_s` from the beginning of the drain, and again after each progress.
    """

    def __init__(self, turn: Turn, house: HttpServer, stall_s: float) -> None:
        self._turn = turn
        self._service: Service = turn.service
        self._house = house
        self._stall_s = stall_s
        self._began_ns = self._service.now_ns
        # Time since when each peer has nothing queued, by peer number.
        self._idle_ns: dict[int, int] = {}
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(LOOK_S, self._look)

    def stop(self) -> None:
        """Stop disconnecting clients."""
        self._timer.cancel()

    def _look(self) -> None:
        self._timer = self._loop.call_later(LOOK_S, self._look)
        self._turn.begin()
        oldest_ns = self._service.now_ns - int(self._stall_s * _S)
        for peer in clients_of(self._service):
            if self._is_stalled(peer, oldest_ns):
                pace = f"less than {peer.outbox.bounds.pace_bytes} bytes in {self._stall_s:g} s"
                end_client(peer, f"it took {pace} while the gateway was closing (drain_stall_s)")
        self._house.end_stalled(oldest_ns)
        self._turn.flush()

    def _is_stalled(self, peer: Peer, oldest_ns: int) -> bool:
        outbox = peer.outbox
        if outbox.is_behind() and peer.door is not None:
            # The kernel signals writability only once much space is free.
            peer.door.press()
        if outbox.is_behind():
            self._idle_ns.pop(peer.number, None)
            return max(outbox.paced_ns(), self._began_ns) < oldest_ns
        if (peer.asking or peer.serving) and not peer.is_over:
            return False
        idle_ns = self._idle_ns.setdefault(peer.number, self._service.now_ns)
        return max(idle_ns, peer.heard_ns) < oldest_ns
