"""Whoever has a lane cannot make the other end keep without bound, or wait without end."""

import asyncio
import socket
from typing import Any

import pytest
from tests.attacks.lane_receiver import going_direct, ready
from tests.attacks.lane_stranger import HOT, besieged, hello, knowing, proven, tail
from tests.journeys.raw import LIMIT_S, Raw, dialled, fields, subscribe

from weft.client.lanes import shutdown
from weft.client.lanes.lane import UNSENT_MAX_BYTES
from weft.client.lanes.listener import STRANGERS_MAX
from weft.client.lanes.manager import HELD_MAX_BYTES, SLOW_S
from weft.client.lanes.send_stream import WINDOW_BYTES
from weft.errors import NotDirect
from weft.wire.lane_messages import lane_frame

PIECE = bytes(500_000)


@pytest.mark.req("HUB-22")
async def test_a_tail_without_end_is_given_up() -> None:
    async with besieged() as scene, knowing(scene.gateway.address, "evil") as evil:
        number = scene.reader._engine.session.publisher
        async with proven(evil) as lane:
            tailed: dict[str, Any] = {"lane": evil.lane, "from": 0}
            await evil.send(lane_frame("tail", peer=number, **tailed))
            await lane.to_the_end()
            [kept] = scene.reader._engine.lanes.table
            for _ in range(HELD_MAX_BYTES // len(PIECE) + 1):
                await evil.send(tail(number, HOT, PIECE))
            async with asyncio.timeout(LIMIT_S):
                while kept in scene.reader._engine.lanes.table:
                    await asyncio.sleep(0.005)
            assert kept.incoming.held_bytes == 0


@pytest.mark.req("HUB-22")
async def test_changes_of_the_way_without_end_are_given_up() -> None:
    async with besieged() as scene, knowing(scene.gateway.address, "evil") as evil:
        number = scene.reader._engine.session.publisher
        async with proven(evil) as lane:
            [kept] = scene.reader._engine.lanes.table
            many = 1000
            told: dict[str, Any] = {"peers": [number] * many, "numbers": [1] * many}
            told["lanes"] = [evil.lane] * many
            await evil.send(lane_frame("switch", **told))
            held = 0
            async with asyncio.timeout(LIMIT_S):
                while not held:
                    await asyncio.sleep(0.005)
                    held = kept.incoming.held_bytes
            assert held < HELD_MAX_BYTES
            for _ in range(HELD_MAX_BYTES // held + 1):
                await evil.send(lane_frame("switch", **told))
            await lane.to_the_end()


@pytest.mark.req("HUB-21", "HUB-22")
async def test_whoever_asks_and_never_reads_loses_its_lane() -> None:
    async with besieged() as scene, knowing(scene.gateway.address, "evil") as evil:
        question = lane_frame("hello", b"x" * 200, ticket=b"t", nonce=b"") * 100
        most = 0

        async def ask_on(lane: Raw) -> None:
            nonlocal most
            async with asyncio.timeout(LIMIT_S):
                while True:
                    await lane.send(question)
                    kept = [each.wire.unsent_bytes for each in scene.reader._engine.lanes.table]
                    most = max(most, *kept, 0)

        async with proven(evil) as lane:
            with pytest.raises(ConnectionError):
                await ask_on(lane)
        assert 0 < most < 2 * UNSENT_MAX_BYTES
        assert scene.turned_away > 0
        await scene.check()


@pytest.mark.req("HUB-22")
async def test_whoever_says_again_what_it_took_has_taken_nothing() -> None:
    async with going_direct("lazy") as (lazy, writer):
        for _ in range(WINDOW_BYTES // len(PIECE) + 2):
            await writer.publish(HOT, PIECE)

        async def say_again() -> None:
            while True:
                lazy.say(lane_frame("ack", count=0))
                await asyncio.sleep(SLOW_S / 10)

        saying = asyncio.ensure_future(say_again())
        # The gateway deals with it, as with everybody who does not read.
        async with asyncio.timeout(LIMIT_S):
            await lazy.receiver.word("tail")
        saying.cancel()
        await asyncio.wait([saying])


@pytest.mark.req("HUB-22")
async def test_a_lane_that_the_other_end_leaves_takes_nothing_new_and_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutdown, "PARTED_S", 0.5)
    async with going_direct("leaver") as (leaver, writer):
        table = writer._engine.lanes.table
        [left] = table
        await writer.publish(HOT, b"never taken")
        leaver.say(lane_frame("end", count=0))
        async with asyncio.timeout(LIMIT_S):
            while not writer._engine.lanes.ends.is_parting(left):
                await asyncio.sleep(0.005)
        await leaver.receiver.say(subscribe("other"))
        asking = asyncio.ensure_future(writer.direct("other"))
        await ready(leaver.receiver, leaver.port, subject="other")
        with pytest.raises(NotDirect, match="the previous lane to"):
            await asking
        async with asyncio.timeout(LIMIT_S):
            while left in table:
                await asyncio.sleep(0.005)


@pytest.mark.req("HUB-21")
async def test_of_a_crowd_of_strangers_few_are_heard() -> None:
    async with besieged() as scene, knowing(scene.gateway.address, "writer") as writer:
        [offer] = await writer.offered()
        host, port = offer["address"].rsplit(":", 1)
        many = 10 * STRANGERS_MAX
        crowd = [socket.socket() for _ in range(many)]
        try:
            for each in crowd:
                each.setblocking(False)
                each.connect_ex((host, int(port)))
            listener = scene.reader._engine.lanes._invitations.listener
            most = 0
            async with asyncio.timeout(LIMIT_S):
                while scene.turned_away < many - STRANGERS_MAX:
                    await asyncio.sleep(0)
                    most = max(most, len(listener._strangers))
            # At any moment, and not only once those who say nothing were too slow.
            assert most <= STRANGERS_MAX
        finally:
            for each in crowd:
                each.close()
        await scene.check()


@pytest.mark.req("HUB-21")
async def test_invitations_end_with_the_gateway_that_they_came_from() -> None:
    async with besieged() as scene, knowing(scene.gateway.address, "writer") as writer:
        [offer] = await writer.offered()
        line = scene.reader._engine.line
        assert line is not None
        line.abort()
        await line.ended
        async with dialled(offer["address"]) as lane:
            refused = await hello(lane, offer)
            assert refused is not None
            assert fields(refused)["word"] == "refused"
