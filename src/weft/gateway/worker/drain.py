"""Ends the client connections of a service that is closing down.

A drain waits for clients that take what they are owed, and for those that work on a request or wait
for an answer. It does not wait for a client that takes less than the pace of a slow consumer, nor
for one that was sent everything and neither leaves nor says anything.
"""

import asyncio

from weft.broker.replies import end_with, told
from weft.broker.service import Peer, Service
from weft.errors import Draining
from weft.transports.adapter_peer import Seat
from weft.transports.http.server import House
from weft.transports.loop.turn import Turn
from weft.wire.frames import Kind
from weft.wire.message.message import Message

# How often the clients that are left are looked at.
LOOK_S = 0.05

_S = 1_000_000_000
_TEXT = "this gateway is closing down"


def clients_of(service: Service) -> list[Peer]:
    """Return the peers that are not links to other gateways."""
    return [peer for peer in service.peers.values() if peer.carrier is None]


def say_goodbye(service: Service, elsewhere: list[str]) -> None:
    """Tell every client that it should leave, and where else it may go."""
    facts: dict[str, object] = {"reason": "draining", "text": _TEXT}
    if elsewhere:
        facts["elsewhere"] = elsewhere
    goodbye = Message.from_dict(facts)
    for peer in clients_of(service):
        if not peer.is_greeted:
            end_with(peer, Draining(_TEXT))
            continue
        peer.owe(told(peer, Kind.GOODBYE, b"", b"", goodbye))
        if isinstance(peer.door, Seat) and not peer.asking and not peer.serving:
            # A page waits to be closed, and its code says that it should come back.
            peer.end(Draining(_TEXT))


def end_client(peer: Peer, problem: str) -> None:
    """End a connection at once; a client that is behind is told why."""
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

    Each has `stall_s` from the beginning of the drain, and again whenever it has made progress.
    """

    def __init__(self, turn: Turn, house: House, stall_s: float) -> None:
        self._turn = turn
        self._service: Service = turn.service
        self._house = house
        self._stall_s = stall_s
        self._began_ns = self._service.now_ns
        # Since when each peer has been sent everything.
        self._idle_ns: dict[int, int] = {}
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(LOOK_S, self._look)

    def stop(self) -> None:
        """Disconnect nobody any more."""
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
            # The kernel tells only of much room.
            peer.door.press()
        if outbox.is_behind():
            self._idle_ns.pop(peer.number, None)
            return max(outbox.paced_ns(), self._began_ns) < oldest_ns
        if (peer.asking or peer.serving) and not peer.is_over:
            return False
        idle_ns = self._idle_ns.setdefault(peer.number, self._service.now_ns)
        return max(idle_ns, peer.heard_ns) < oldest_ns
