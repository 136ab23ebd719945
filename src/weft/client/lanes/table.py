"""Table of a connection's lanes; merges their messages with relayed ones."""

from collections.abc import Callable, Iterator

from weft.client.connection.session import ClientSession
from weft.client.lanes.lane import Lane
from weft.client.lanes.receive_stream import Run, Unheard
from weft.client.subscriptions.flow_control import Reading


class LaneTable:
    """Lanes by the number of the peer: at most one per peer.

    Numbers are assigned by one gateway. Lanes left over from an earlier one are only counted.
    """

    def __init__(self, session: ClientSession, reading: Reading) -> None:
        self._session = session
        self._reading = reading
        self._lanes: dict[Lane, None] = {}
        self._by_number: dict[int, Lane] = {}
        self._by_identity: dict[bytes, Lane] = {}

    def __iter__(self) -> Iterator[Lane]:
        return iter(list(self._lanes))

    def __len__(self) -> int:
        return len(self._lanes)

    def __contains__(self, lane: Lane) -> bool:
        return lane in self._lanes

    def of(self, number: int) -> Lane | None:
        """Return the lane to a peer."""
        return self._by_number.get(number)

    def of_sender(self, frame: bytes) -> Lane | None:
        """Return the lane to the publisher of a message."""
        return self._by_identity.get(frame[8:16])

    def add(self, lane: Lane) -> None:
        """Add a lane; its peer must have no other."""
        self._lanes[lane] = None
        self._by_number[lane.other.number] = lane
        self._by_identity[lane.identity] = lane
        self._reading.wires.add(lane.wire)
        self._session.has_lanes = True

    def forget(self, lane: Lane) -> None:
        """Remove a lane."""
        if lane in self._lanes:
            del self._lanes[lane]
            if self._by_number.get(lane.other.number) is lane:
                del self._by_number[lane.other.number]
            if self._by_identity.get(lane.identity) is lane:
                del self._by_identity[lane.identity]
            self._reading.wires.discard(lane.wire)
            self._session.has_lanes = bool(self._lanes)

    def detach(self) -> None:
        """Remove the numbers, because the next gateway assigns others."""
        self._by_number.clear()
        self._by_identity.clear()

    def merge(self, run: Run, is_heard: Callable[[Run], bool]) -> list[Run]:
        """Merge messages from the gateway with lane messages; return the ones to deliver now.

        Messages that must wait and have no receiver yet are dropped: a subscription that is
        confirmed meanwhile must not receive them.
        """
        if not any(lane.incoming.is_holding for lane in self._lanes):
            return [run]
        merged: list[Run] = []
        for frame in run:
            lane = self.of_sender(frame)
            if lane is None:
                merged.append([frame])
            elif lane.incoming.is_holding and not is_heard([frame]):
                merged += lane.incoming.by_gateway(Unheard(1))
            else:
                merged += lane.incoming.by_gateway([frame])
        return merged
