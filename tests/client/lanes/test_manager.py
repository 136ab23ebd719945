"""The lanes of one connection among themselves, between real clients and those that play one."""

import asyncio

import pytest
from tests.attacks.lane_receiver import alone, going_direct, listening, ready
from tests.attacks.lane_stranger import HOT

import weft
from weft.client.lanes import publisher_side
from weft.client.lanes.manager import DEAD_S, TICK_S
from weft.errors import NotDirect


@pytest.mark.req("HUB-22")
async def test_whoever_stood_still_itself_does_not_blame_others() -> None:
    async with going_direct("slow") as (_, writer):
        await writer.publish(HOT, b"not confirmed yet")
        lanes = writer._engine.lanes
        [lane] = lanes.table
        while lane.out.is_settled:
            await asyncio.sleep(0)
        # It was idle until now, and this went just before.
        lane.progress_at -= DEAD_S
        lane.is_waited_for = False
        lanes._tick()
        assert not lane.out.is_over
        # As if the whole program had been stopped.
        lanes._ticked_at -= DEAD_S + 3 * TICK_S
        lane.progress_at -= DEAD_S + 3 * TICK_S
        lanes._tick()
        assert not lane.out.is_over
        # And as if only the other end had.
        lane.progress_at -= DEAD_S
        lanes._tick()
        assert lane.out.is_over


@pytest.mark.req("HUB-16", "HUB-22")
@pytest.mark.parametrize("count", [1, 2])
async def test_two_that_call_each_other_at_once_have_one_lane(count: int) -> None:
    async with (
        weft.Gateway(listen="127.0.0.1:0", workers="inline") as gateway,
        weft.connect(gateway.address) as one,
        weft.connect(gateway.address) as other,
    ):
        heard: list[bytes] = []
        for number in range(count):
            await one.subscribe(f"to.one.{number}", lambda each: heard.append(each.payload)).ready()
            await other.subscribe(
                f"to.other.{number}", lambda each: heard.append(each.payload)
            ).ready()
        await asyncio.gather(
            *[one.direct(f"to.other.{number}") for number in range(count)],
            *[other.direct(f"to.one.{number}") for number in range(count)],
        )
        for connection in (one, other):
            assert len(connection._engine.lanes.table) == 1
        await one.publish("to.other.0", b"there")
        await other.publish("to.one.0", b"and back")
        await asyncio.gather(one.flush(), other.flush())
        while len(heard) < 2:
            await asyncio.sleep(0)
        assert sorted(heard) == [b"and back", b"there"]


async def test_a_receiver_that_cannot_be_reached_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher_side, "CALL_S", 0.2)
    async with (
        alone() as scene,
        listening(scene.gateway.address, "walled") as receiver,
        weft.connect(scene.gateway.address, name="writer") as writer,
    ):
        asking = asyncio.ensure_future(writer.direct(HOT))
        await ready(receiver.receiver, receiver.port)
        with pytest.raises(NotDirect) as caught:
            await asking
        assert str(caught.value) == (
            f"no answer within 0.2 s from walled at 127.0.0.1:{receiver.port}"
        )
