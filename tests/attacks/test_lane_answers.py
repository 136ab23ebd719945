"""By a lane nobody has answers sent where a gateway would not let it, or answers for others."""

import asyncio
from typing import Any

import pytest
from tests.attacks.lane_stranger import HOT, NONCE, Knowing, Scene, besieged, knowing, proven, tail
from tests.journeys.raw import LIMIT_S, Raw, errors, fields

import weft
from weft.wire.frames import Flag, Kind, encode
from weft.wire.lane_messages import lane_frame


def number_of(scene: Scene) -> int:
    return scene.reader._engine.session.publisher


def stamped(by: Knowing, body: bytes, reply: bytes, flags: int = 0) -> bytes:
    """A message to HOT as it goes by a lane."""
    frame = bytearray(encode(Kind.MESSAGE, HOT.encode(), body, reply, Flag.BARE | flags))
    frame[8:12] = by.origin.to_bytes(4, "little")
    frame[12:16] = by.number.to_bytes(4, "little")
    return bytes(frame)


async def begin(scene: Scene, writer: Knowing, lane: Raw) -> None:
    """Have what the writer says go by the lane from here on."""
    await writer.switch(number_of(scene), 1)
    await lane.send(lane_frame("switch", number=1))


@pytest.mark.req("HUB-8", "HUB-21")
async def test_a_reply_that_is_not_its_own_ends_the_lane_and_diverts_nothing() -> None:
    async with (
        besieged() as scene,
        knowing(scene.gateway.address, "evil") as evil,
        weft.connect(scene.gateway.address) as audit,
    ):
        orders = audit.subscribe("orders")
        await orders.ready()
        async with proven(evil) as lane:
            await begin(scene, evil, lane)
            await lane.send(stamped(evil, b"x", b"orders"))
            assert [frame for frame in await lane.to_the_end() if frame.kind == Kind.MESSAGE] == []
        await scene.reader.publish("orders", b"for those who subscribed")
        assert (await orders.next(10)).payload == b"for those who subscribed"
        await scene.check()


@pytest.mark.req("HUB-8", "HUB-21")
@pytest.mark.parametrize("reply", [b"\xff\xfe", b"_WEFT.ask.status", b"a..b"])
async def test_a_reply_that_cannot_be_is_not_heard(reply: bytes) -> None:
    async with besieged() as scene, knowing(scene.gateway.address, "evil") as evil:
        async with proven(evil) as lane:
            await begin(scene, evil, lane)
            await lane.send(stamped(evil, b"unheard of", reply))
            await lane.to_the_end()
        await scene.check()


@pytest.mark.req("HUB-8", "HUB-21")
async def test_the_inbox_of_a_third_is_not_where_a_lane_has_answers_sent() -> None:
    async with (
        besieged() as scene,
        knowing(scene.gateway.address, "evil") as evil,
        knowing(scene.gateway.address, "third") as third,
    ):
        async with proven(evil) as lane:
            await begin(scene, evil, lane)
            await lane.send(stamped(evil, b"unheard of", third.inbox + b".1"))
            await lane.to_the_end()
        await scene.check()


@pytest.mark.req("HUB-7", "HUB-8")
async def test_answers_that_are_for_others_reach_them_whatever_goes_by_lanes() -> None:
    async with (
        weft.Gateway(listen="127.0.0.1:0", workers="inline") as gateway,
        weft.connect(gateway.address) as feed,
        weft.connect(gateway.address) as worker,
        weft.connect(gateway.address) as audit,
    ):
        results = audit.subscribe("results")
        await results.ready()

        async def work(job: weft.AsyncReceived) -> None:
            await job.respond(job.payload + b" done")

        await worker.subscribe("jobs", work).ready()
        await feed.direct("jobs")
        for job in (b"1", b"2"):
            await feed.publish("jobs", job, reply="results")
            assert (await results.next(10)).payload == job + b" done"


@pytest.mark.req("HUB-21")
@pytest.mark.parametrize("way", ["lane", "tail"])
async def test_what_somebody_else_was_asked_is_not_answered_by_a_lane(way: str) -> None:
    async with (
        besieged() as scene,
        knowing(scene.gateway.address, "evil") as evil,
        weft.connect(scene.gateway.address) as honest,
    ):
        asked: asyncio.Queue[weft.AsyncReceived] = asyncio.Queue()
        await honest.subscribe("sums", asked.put_nowait).ready()
        async with proven(evil) as lane:
            await begin(scene, evil, lane)
            answer = asyncio.ensure_future(scene.reader.send_request("sums", b"?"))
            question = await asked.get()
            reply = question.reply
            if way == "lane":
                await lane.send(evil.by_lane(b"a lie", reply))
            else:
                number = number_of(scene)
                told: dict[str, Any] = {"lane": evil.lane, "from": 1}
                await evil.send(lane_frame("tail", peer=number, **told))
                await evil.send(tail(number, reply, b"a lie"))
            # What comes after it by the same way is heard: so it has been there.
            if way == "lane":
                await lane.send(evil.by_lane(b"and then"))
            else:
                await evil.send(tail(number, HOT, b"and then"))
            assert await scene.next() == b"and then"
            assert not answer.done()
            assert scene.reader.statistics.lane_refusals == 1
            await question.respond(b"the truth")
            assert (await answer).payload == b"the truth"


@pytest.mark.req("HUB-21")
async def test_a_tail_brings_only_what_the_lane_could() -> None:
    async with besieged() as scene, knowing(scene.gateway.address, "evil") as evil:
        heard: list[bytes] = []
        other = scene.reader.subscribe("other", lambda message: heard.append(message.payload))
        await other.ready()
        async with proven(evil):
            number = number_of(scene)
            await evil.switch(number, 1)
            told: dict[str, Any] = {"lane": evil.lane, "from": 0}
            await evil.send(lane_frame("tail", peer=number, **told))
            await evil.switch(number, 1)
            await evil.send(tail(number, "other", b"past journals and groups"))
            await evil.send(tail(number, HOT, b"as it should be"))
            assert await scene.next() == b"as it should be"
        assert heard == []
        await evil.say(encode(Kind.MESSAGE, b"other", b"relayed", flags=Flag.BARE))
        while not heard:
            await asyncio.sleep(0.005)
        assert heard == [b"relayed"]


@pytest.mark.req("HUB-22")
async def test_a_tail_brings_what_a_ticket_was_shown_for_and_not_proven_any_more() -> None:
    async with besieged() as scene, knowing(scene.gateway.address, "writer") as writer:
        heard: asyncio.Queue[bytes] = asyncio.Queue()
        await scene.reader.subscribe("more", lambda each: heard.put_nowait(each.payload)).ready()
        async with proven(writer) as lane:
            number = number_of(scene)
            first = writer.lane
            [offer] = await writer.offered("more")
            writer.lane = first
            shown = lane_frame("hello", b"more", ticket=offer["ticket"], nonce=NONCE)
            await lane.send(shown)
            assert fields(await lane.next(Kind.LANE))["word"] == "serve"
            # From here on as if the lane had broken under what was sent by it.
            told: dict[str, Any] = {"lane": first, "from": 0}
            await writer.switch(number, 1)
            await writer.send(lane_frame("tail", peer=number, **told))
            await writer.switch(number, 1)
            await writer.send(tail(number, "more", b"not lost"))
            async with asyncio.timeout(LIMIT_S):
                assert await heard.get() == b"not lost"


@pytest.mark.req("HUB-21")
async def test_those_who_only_listen_are_offered_as_such_and_not_asked() -> None:
    async with besieged() as scene, knowing(scene.gateway.address, "writer") as writer:
        await scene.reader.subscribe("told", listen_only=True).ready()
        [offer] = await writer.offered("told")
        assert offer["answers"] is False
        asked = encode(Kind.MESSAGE, b"told", b"?", writer.inbox + b".9", Flag.REQUEST)
        assert errors(await writer.say(asked)) == ["NotKnown"]
