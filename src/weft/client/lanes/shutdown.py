"""How lanes come to their end.

With a gateway between both ends a lane is finished: what was not confirmed goes through the
gateway. Without one it parts: it is used up first, as far as that can be.
"""

import asyncio
from collections.abc import Callable

from weft.client.lanes.connection_api import Gate
from weft.client.lanes.lane import Lane
from weft.client.lanes.splitter import Splitter
from weft.client.lanes.table import LaneTable
from weft.client.status import Gap, Status, What

# How long the last words on a lane may take when the gateway is gone.
PARTING_S = 2.0
# How long nothing must have come by a lane of what the other end may send by it.
UNHEARD_S = 10.0
# How long a gateway may take to tell that the other end, which lost it, is gone.
PARTED_S = 60.0


class LaneEnds:
    """Ends the lanes of a table; `lost` is told of each that nothing new goes by."""

    def __init__(
        self,
        table: LaneTable,
        splitter: Splitter,
        gate: Gate,
        lost: Callable[[Lane, str], None],
    ) -> None:
        # Between a welcome and the loss of the line.
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
        """Say if nothing may be sent yet: lanes of a gateway that was lost are being used up."""
        self._is_waiting = self._is_waiting and bool(self._parting)
        return self._is_waiting

    def is_parting(self, lane: Lane) -> bool:
        """Say if a lane is being used up without the gateway, which takes as long as it may."""
        return lane in self._parting

    def part_all(self) -> None:
        """The gateway is gone."""
        self.is_gateway_here = False
        self._is_waiting = True
        for lane in self._table:
            # What comes late could be overtaken by what comes through the next gateway.
            lane.is_alone = True
            lane.incoming.over()
            self.part(lane)
            self.sent_all(lane)
            self._use_up(lane)
        self._table.detach()

    async def settled(self) -> None:
        """Wait until everything that went by lanes was taken."""
        while any(
            not (lane.out.is_settled or lane.out.is_over or lane in self._parting)
            for lane in self._table
        ):
            changed: asyncio.Future[None] = self._loop.create_future()
            self._settled.append(changed)
            await changed

    def close(self) -> None:
        """There are no lanes any more: nothing is left to wait for."""
        self._parting.clear()
        self._tell_settled()

    def release_unused(self) -> None:
        """Send nothing more by lanes that no route goes by; they end once all was taken."""
        for lane in self._table:
            if self._is_unused(lane):
                self._splitter.leave(lane.out, self._gate.tell_gateway)
                self._splitter.forget_replies(lane.out)
                self._finish_if_unused(lane)

    def took_more(self, lane: Lane) -> None:
        """The other end has taken more: it may be all."""
        lane.progress_at = self._loop.time()
        if lane in self._parting:
            self._end_if_parted(lane)
        else:
            self._finish_if_unused(lane)
        self._changed()

    def sent_all(self, lane: Lane) -> None:
        """Nothing more comes from the other end."""
        self._release(lane)
        if lane.out.is_over:
            self._table.forget(lane)
        self._end_if_parted(lane)

    def broke(self, lane: Lane, reason: str) -> None:
        """The wire of a lane is gone."""
        if lane in self._parting:
            if lane.is_alone:
                self.drop(lane)
            self._changed()
        elif lane in self._table:
            self.finish(lane, f"the lane to {lane.other.name} broke: {reason}")

    def finish(self, lane: Lane, reason: str) -> None:
        """End a lane; what the other end has not confirmed goes to it through the gateway."""
        # Of a lane that was not confirmed the other end may know nothing, and nothing went by it.
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
        """End a lane whose other end does not keep to the rules; what it said last may be lost."""
        self.finish(lane, reason)
        lane.incoming.over()
        lane.incoming.is_cut_short = True
        self.sent_all(lane)

    def part(self, lane: Lane) -> None:
        """Bring a lane to its end without the gateway: the other end gets what is under way.

        As long as the gateway may bring what the other end said before, it is waited for; but not
        for ever: somebody may say that it goes, and stay.
        """
        if lane not in self._parting and lane in self._table:
            self._retire(lane, "the gateway is gone")
            self._parting.add(lane)
            self._loop.call_later(PARTED_S, self.drop, lane)
            if lane.is_open and not lane.out.is_over:
                lane.say_end()
            self._end_if_parted(lane)

    def gone(self, lane: Lane) -> None:
        """The other end is gone from the gateway; what it said at last may still be under way."""
        self.part(lane)
        if lane not in self._table:
            return
        lane.is_alone = True
        self._gate.deal(lane.incoming.alone())
        if lane.incoming.is_over:
            self.sent_all(lane)
        self._use_up(lane)

    def drop(self, lane: Lane) -> None:
        """Let go a lane for which nothing more can be done."""
        self._parting.discard(lane)
        if lane not in self._table:
            self._changed()
            return
        self._retire(lane, "it is over")
        if not (lane.out.is_settled or lane.out.is_over):
            detail = f"what went by the lane to {lane.other.name} at last may be lost"
            self._gate.reporter.report(Status(What.GAP, detail))
        self._table.forget(lane)
        lane.incoming.over()
        self._release(lane)
        lane.wire.close("it is over")
        self._changed()

    def _use_up(self, lane: Lane) -> None:
        """Give a lane a while for what is under way, if there is anything."""
        if lane.is_open and not lane.out.is_over:
            self._loop.call_later(PARTING_S, self.drop, lane)
        else:
            self.drop(lane)

    def _finish_if_unused(self, lane: Lane) -> None:
        if self._is_unused(lane) and lane.out.is_settled:
            self.finish(lane, "no route goes by it any more")

    def _is_unused(self, lane: Lane) -> bool:
        """Say if this end has no use for a lane that it called for, and the other made none of it.

        The other end may have proven something, too, and sends it now and then.
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
        """Send nothing new by a lane."""
        self._lost(lane, reason)
        self._splitter.remove(lane.out)

    def _release(self, lane: Lane) -> None:
        """Let go what was held back, and tell in its place of what will not come."""
        incoming = lane.incoming
        is_lacking = incoming.missing > 0 or incoming.is_cut_short
        for held in incoming.released():
            if is_lacking:
                self._announce(lane, incoming.missing)
            self._gate.deal(held)
            incoming.missing, incoming.is_cut_short = 0, False
            is_lacking = True

    def _announce(self, lane: Lane, missing: int) -> None:
        # Whoever closes its connection has heard enough.
        if not self._gate.reading.is_closing:
            gap = Gap("lost", missing, self._gate.session.origin)
            detail = f"the lane from {lane.other.name} was cut short"
            self._gate.subscriptions.announce(gap, detail)

    def _changed(self) -> None:
        """There may be room now, or nothing left to wait for."""
        self._tell_settled()
        self._gate.flush()

    def _tell_settled(self) -> None:
        waiting, self._settled = self._settled, []
        for each in waiting:
            if not each.done():
                each.set_result(None)
