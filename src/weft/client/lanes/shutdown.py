"""End of lanes.

With a gateway between both ends a lane is finished: unacknowledged items go through the gateway.
Without one it parts: it delivers its data in flight first, as far as possible.
"""

import asyncio
from collections.abc import Callable

from weft.client.lanes.connection_api import LaneConnection
from weft.client.lanes.lane import Lane
from weft.client.lanes.splitter import Splitter
from weft.client.lanes.table import LaneTable
from weft.client.status import Gap, Status, What

# Time for the last frames on a lane when the gateway is gone.
PARTING_S = 2.0
# A lane that the other end may use counts as unused after this time without its messages.
UNHEARD_S = 10.0
# Limit on waiting for the gateway's notice that the other end is gone.
PARTED_S = 60.0


class LaneEnds:
    """Ends the lanes of a table; calls `lost` for each lane that takes no new messages."""

    def __init__(
        self,
        table: LaneTable,
        splitter: Splitter,
        gate: LaneConnection,
        lost: Callable[[Lane, str], None],
    ) -> None:
        # True between WELCOME and the loss of the connection.
        self.is_gateway_here = False
        self._table = table
        self._splitter = splitter
        self._gate = gate
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._parting: set[Lane] = set()
        self._is_waiting = False
        self._settled: list[asyncio.Future[None]] = []

    @property
    def is_waiting(self) -> bool:
        """Whether sending must wait until the lanes of a lost gateway have ended."""
        self._is_waiting = self._is_waiting and bool(self._parting)
        return self._is_waiting

    def is_parting(self, lane: Lane) -> bool:
        """Return whether a lane is ending without the gateway, within its time limit."""
        return lane in self._parting

    def part_all(self) -> None:
        """End all lanes: the gateway is gone."""
        self.is_gateway_here = False
        self._is_waiting = True
        for lane in self._table:
            # Late messages could be overtaken by those of the next gateway.
            lane.is_alone = True
            lane.incoming.over()
            self.part(lane)
            self.sent_all(lane)
            self._use_up(lane)
        self._table.detach()

    async def settled(self) -> None:
        """Wait until all items sent through lanes were acknowledged."""
        while any(
            not (lane.out.is_settled or lane.out.is_over or lane in self._parting)
            for lane in self._table
        ):
            changed: asyncio.Future[None] = self._loop.create_future()
            self._settled.append(changed)
            await changed

    def close(self) -> None:
        """Release all waiters: there are no lanes any more."""
        self._parting.clear()
        self._tell_settled()

    def release_unused(self) -> None:
        """Leave lanes that no route uses; they end once all items were acknowledged."""
        for lane in self._table:
            if self._is_unused(lane):
                self._splitter.leave(lane.out, self._gate.tell_gateway)
                self._splitter.forget_replies(lane.out)
                self._finish_if_unused(lane)

    def took_more(self, lane: Lane) -> None:
        """Handle an acknowledgement, which may complete the end of a lane."""
        lane.progress_at = self._loop.time()
        if lane in self._parting:
            self._end_if_parted(lane)
        else:
            self._finish_if_unused(lane)
        self._changed()

    def sent_all(self, lane: Lane) -> None:
        """Handle the end of the other end's stream."""
        self._release(lane)
        if lane.out.is_over:
            self._table.forget(lane)
        self._end_if_parted(lane)

    def broke(self, lane: Lane, reason: str) -> None:
        """Handle the loss of a lane's transport."""
        if lane in self._parting:
            if lane.is_alone:
                self.drop(lane)
            self._changed()
        elif lane in self._table:
            self.finish(lane, f"the lane to {lane.other.name} was lost: {reason}")

    def finish(self, lane: Lane, reason: str) -> None:
        """End a lane; items that were not acknowledged go through the gateway."""
        # An unconfirmed lane carried no messages, and may be unknown to the other end.
        is_unheard_of = lane.is_caller and not lane.is_confirmed
        if not self.is_gateway_here or lane in self._parting or is_unheard_of:
            self.drop(lane)
            return
        if not lane.out.is_over:
            self._retire(lane, reason)
            told = lane.out.finish(with_tail=not self._splitter.is_required)
            self._gate.tell_gateway(b"".join(told))
        if lane.is_open:
            lane.wire.close(reason)
        if lane.incoming.is_over:
            self._table.forget(lane)
        self._changed()

    def give_up(self, lane: Lane, reason: str) -> None:
        """End a lane whose peer violates the protocol; its last messages may be lost."""
        self.finish(lane, reason)
        lane.incoming.over()
        lane.incoming.is_cut_short = True
        self.sent_all(lane)

    def part(self, lane: Lane) -> None:
        """End a lane without the gateway: the other end gets the data in flight.

        Messages that the gateway may still forward from the other end are awaited, for at most
        `PARTED_S`: a peer may announce its end and stay connected.
        """
        if lane not in self._parting and lane in self._table:
            self._retire(lane, "the gateway is gone")
            self._parting.add(lane)
            self._loop.call_later(PARTED_S, self.drop, lane)
            if lane.is_open and not lane.out.is_over:
                lane.say_end()
            self._end_if_parted(lane)

    def gone(self, lane: Lane) -> None:
        """Handle the end of the other client; its last messages may still be in flight."""
        self.part(lane)
        if lane not in self._table:
            return
        lane.is_alone = True
        self._gate.deal(lane.incoming.alone())
        if lane.incoming.is_over:
            self.sent_all(lane)
        self._use_up(lane)

    def drop(self, lane: Lane) -> None:
        """End a lane now."""
        self._parting.discard(lane)
        if lane not in self._table:
            self._changed()
            return
        self._retire(lane, "the lane has ended")
        if not (lane.out.is_settled or lane.out.is_over):
            detail = f"the last messages on the lane to {lane.other.name} may be lost"
            self._gate.reporter.report(Status(What.GAP, detail))
        self._table.forget(lane)
        lane.incoming.over()
        self._release(lane)
        lane.wire.close("the lane has ended")
        self._changed()

    def _use_up(self, lane: Lane) -> None:
        """Give a lane up to `PARTING_S` for data in flight, if there may be any."""
        if lane.is_open and not lane.out.is_over:
            self._loop.call_later(PARTING_S, self.drop, lane)
        else:
            self.drop(lane)

    def _finish_if_unused(self, lane: Lane) -> None:
        if self._is_unused(lane) and lane.out.is_settled:
            self.finish(lane, "no route uses it any more")

    def _is_unused(self, lane: Lane) -> bool:
        """Return whether this end opened the lane and neither end uses it any more.

        The other end may have proven a subject, too, and send on it now and then.
        """
        if not lane.is_caller or lane.claims or lane.out.is_over or lane in self._parting:
            return False
        if lane.shown and self._loop.time() - lane.heard_at < UNHEARD_S:
            return False
        return not any(lane.out in direct.outs for direct in self._splitter.routes.values())

    def _end_if_parted(self, lane: Lane) -> None:
        if lane in self._parting and lane.out.is_settled and lane.incoming.is_over:
            self.drop(lane)

    def _retire(self, lane: Lane, reason: str) -> None:
        """Send nothing new through a lane."""
        self._lost(lane, reason)
        self._splitter.remove(lane.out)

    def _release(self, lane: Lane) -> None:
        """Deliver held messages, and report gaps where messages are missing."""
        incoming = lane.incoming
        is_lacking = incoming.missing > 0 or incoming.is_cut_short
        for held in incoming.released():
            if is_lacking:
                self._announce(lane, incoming.missing)
            self._gate.deal(held)
            incoming.missing, incoming.is_cut_short = 0, False
            is_lacking = True

    def _announce(self, lane: Lane, missing: int) -> None:
        # A connection that is closing needs no report.
        if not self._gate.reading.is_closing:
            gap = Gap("lost", missing, self._gate.session.origin)
            detail = f"the lane from {lane.other.name} ended before all messages arrived"
            self._gate.subscriptions.announce(gap, detail)

    def _changed(self) -> None:
        """Wake waiters and flush: there may be space, or nothing left to wait for."""
        self._tell_settled()
        self._gate.flush()

    def _tell_settled(self) -> None:
        waiting, self._settled = self._settled, []
        for each in waiting:
            if not each.done():
                each.set_result(None)
