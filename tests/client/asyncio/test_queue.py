import asyncio
import logging
import os

import pytest

from weft.client.asyncio.queue import AsyncQueue
from weft.client.connection.session import ClientDescription, ClientSession
from weft.client.connection.transport import READ_BYTES
from weft.client.options import SubscriptionOptions
from weft.client.publish.encode import message_frame
from weft.client.status import Gap, Reporter, Status, What
from weft.client.subscriptions.flow_control import Reading
from weft.client.subscriptions.receive_window import ITEM_COST_BYTES
from weft.wire.nonces import Nonces

FRAME = message_frame("a", b"x" * 100)
COST = len(FRAME) + ITEM_COST_BYTES


class Town:
    """A queue of four frames, and what it said."""

    def __init__(self, *, hears_gaps: bool = True) -> None:
        self.statuses: list[Status] = []
        self.gaps: list[Gap] = []
        self.news = 0
        session = ClientSession(
            ClientDescription("default", "", "", "test"), 10, Nonces(os.urandom)
        )
        # No more is under way than fits, so that the ceiling is near.
        session.body_limit_bytes = -READ_BYTES
        reporter = Reporter(logging.getLogger("weft.test"), "me.1", self.statuses.append)
        reading = Reading(session, reporter, 4 * COST, asyncio.get_running_loop().call_soon)
        wish = SubscriptionOptions(on_gap=self.gaps.append if hears_gaps else None)
        self.queue = AsyncQueue(reading, wish, self._told)

    def _told(self) -> None:
        self.news += 1

    def take(self) -> bytes | None:
        frame = self.queue.take()
        if frame is not None:
            self.queue.release(frame)
        return frame


async def test_what_is_put_is_taken_in_order() -> None:
    town = Town()
    other = message_frame("b", b"")
    town.queue.put([FRAME])
    town.queue.put([other])
    assert [town.take(), town.take(), town.take()] == [FRAME, other, None]


async def test_whoever_takes_is_told_once_until_there_is_nothing_left() -> None:
    town = Town()
    town.queue.put([FRAME])
    town.queue.put([FRAME])
    assert town.news == 1
    while town.take():
        pass
    town.queue.put([FRAME])
    assert town.news == 2


async def test_whoever_stops_taking_is_told_of_what_comes_next() -> None:
    town = Town()
    town.queue.put([FRAME])
    town.queue.put([FRAME])
    town.take()
    assert town.queue.pause()
    town.take()
    assert not town.queue.pause()
    town.queue.put([FRAME])
    assert town.news == 2


async def test_a_gap_is_told_in_its_place() -> None:
    town = Town()
    town.queue.put([FRAME])
    town.queue.missed(Gap("slow", 3))
    town.queue.put([FRAME])
    assert town.take() == FRAME
    assert town.gaps == []
    assert town.take() == FRAME
    assert town.gaps == [Gap("slow", 3)]


async def test_what_is_dealt_with_before_a_gap_is_not_held_for_ever() -> None:
    town = Town()
    town.queue.put([FRAME])
    town.queue.missed(Gap("slow", 3))
    assert [town.take(), town.take()] == [FRAME, None]
    assert town.queue._intake.held_bytes == 0


async def test_a_gap_that_nobody_wants_is_not_kept() -> None:
    town = Town(hears_gaps=False)
    town.queue.missed(Gap("slow", 3))
    assert town.news == 0


@pytest.mark.parametrize("hears_gaps", [True, False])
async def test_what_does_not_fit_is_counted_and_announced(hears_gaps: bool) -> None:
    town = Town(hears_gaps=hears_gaps)
    for _ in range(12):
        town.queue.put([FRAME])
    assert [status.what for status in town.statuses] == [What.GAP]
    taken = 0
    while town.take():
        taken += 1
    town.queue.put([FRAME])
    assert town.take() == FRAME
    assert (taken, town.gaps) == (8, [Gap("full", 4)] if hears_gaps else [])
    # And so on, the next time.
    for _ in range(12):
        town.queue.put([FRAME])
    assert len(town.statuses) == 2


async def test_gaps_are_bounded_too() -> None:
    town = Town()
    for _ in range(1000):
        town.queue.missed(Gap("slow", 1))
    assert len(town.queue._items) < 20


async def test_waiting_ends_when_something_comes() -> None:
    town = Town()
    asyncio.get_running_loop().call_soon(town.queue.put, [FRAME])
    assert await town.queue.wait()
    assert await town.queue.wait()


async def test_waiting_ends_with_the_subscription() -> None:
    town = Town()
    asyncio.get_running_loop().call_soon(town.queue.ended)
    assert not await town.queue.wait()


async def test_after_its_end_it_takes_nothing_but_gives_what_it_has() -> None:
    town = Town()
    town.queue.put([FRAME])
    town.queue.ended()
    town.queue.put([FRAME])
    town.queue.missed(Gap("slow", 1))
    assert [town.take(), town.take()] == [FRAME, None]


async def test_cleared_it_has_nothing() -> None:
    town = Town()
    town.queue.put([FRAME])
    town.queue.clear()
    assert town.take() is None
