"""What clients, and a gateway, say of lanes that they have no right to say, or that is not so."""

import asyncio
from typing import Any

import msgspec
import pytest
from tests.attacks.lane_receiver import alone, going_direct, listening, ready
from tests.attacks.lane_stranger import HOT, LANES, besieged, knowing, proven, tail, words
from tests.journeys.raw import bodies, errors, fields

import weft
from weft.client.lanes.publisher_side import RECEIVERS_MAX
from weft.errors import NotDirect
from weft.wire.frames import Kind, encode
from weft.wire.lane_messages import lane_frame


@pytest.mark.req("HUB-21")
async def test_those_without_a_lane_can_tell_each_other_nothing() -> None:
    async with (
        besieged() as scene,
        knowing(scene.gateway.address, "victim") as victim,
        knowing(scene.gateway.address, "writer") as writer,
    ):
        for number in (victim.number, scene.reader._engine.session.publisher, writer.number, 99):
            tailed: dict[str, Any] = {"peer": number, "lane": 5, "from": 0}
            heard = await writer.say(
                lane_frame("switch", peers=[number], lanes=[5], numbers=[1]),
                lane_frame("tail", **tailed),
                tail(number, HOT, b"unheard of"),
                lane_frame("end", peer=number, lane=5, count=1),
            )
            assert words(heard) == ["over"]
            assert len(heard) == 1
        assert await victim.say() == []
        await scene.check()


@pytest.mark.req("HUB-21")
@pytest.mark.parametrize(
    ("said", "name"),
    [
        (lane_frame("switch", peers=[1, 2], lanes=[5, 5], numbers=[1]), "BadOption"),
        (lane_frame("switch", peers=["one"], lanes=[5], numbers=[1]), "BadOption"),
        (lane_frame("switch", peers=[1] * 2000, lanes=[5] * 2000, numbers=[1] * 2000), "BadOption"),
        (lane_frame("invite", HOT.encode()), "UsageError"),
        (lane_frame("direct", HOT.encode()), "UsageError"),
        (lane_frame("end"), "NoSuchField"),
        (tail(1, "_WEFT.ask.status", b"?"), "NotAllowed"),
        (encode(Kind.LANE, HOT.encode(), b""), "BadMessage"),
    ],
)
async def test_what_cannot_be_said_of_lanes_is_refused_and_counted(said: bytes, name: str) -> None:
    async with besieged() as scene, knowing(scene.gateway.address, "writer") as writer:
        before = await scene.refused(name)
        assert errors(await writer.say(said)) == [name]
        assert await scene.refused(name) == before + 1
        assert errors(await writer.say()) == []
        await scene.check()


@pytest.mark.req("HUB-22")
@pytest.mark.parametrize(
    "said",
    [
        [{"word": "switch", "number": 7}],
        [{"word": "tail", "from": 5}],
        [{"word": "tail", "from": 0}, {"word": "tail", "from": 0}],
    ],
)
async def test_a_wrong_word_of_the_other_end_costs_it_the_lane_alone(
    said: list[dict[str, Any]],
) -> None:
    async with besieged() as scene, knowing(scene.gateway.address, "writer") as writer:
        number = scene.reader._engine.session.publisher
        async with proven(writer) as lane:
            for each in said:
                if each["word"] == "switch":
                    await writer.switch(number, each["number"])
                else:
                    tailed: dict[str, Any] = {"lane": writer.lane, "from": each["from"]}
                    await writer.send(lane_frame("tail", peer=number, **tailed))
            await lane.to_the_end()
        await scene.check()


@pytest.mark.req("HUB-22")
async def test_what_is_said_of_another_lane_than_the_one_that_there_is_is_passed_over() -> None:
    async with besieged() as scene, knowing(scene.gateway.address, "writer") as writer:
        number = scene.reader._engine.session.publisher
        async with proven(writer) as lane:
            other = writer.lane ^ 1
            tailed: dict[str, Any] = {"lane": other, "from": 0}
            await writer.send(
                lane_frame("switch", peers=[number], lanes=[other], numbers=[1])
                + lane_frame("tail", peer=number, **tailed)
                + lane_frame("end", peer=number, lane=other, count=7)
            )
            # Whoever ends a lane that the other end never had is told that it is over.
            assert (await writer.word("end")).items() >= {"lane": other, "count": 0}.items()
            await writer.switch(number, 1)
            await lane.send(lane_frame("switch", number=1) + writer.by_lane(b"by the lane"))
            assert await scene.next() == b"by the lane"
        await scene.check()


@pytest.mark.req("HUB-15", "HUB-22")
@pytest.mark.parametrize("count", [10, -1])
async def test_a_receiver_that_confirms_what_it_was_not_sent_is_relayed_to(count: int) -> None:
    async with going_direct("liar") as (liar, writer):
        await writer.publish(HOT, b"by the lane")
        liar.say(lane_frame("ack", count=count))
        await liar.receiver.word("end")
        await writer.publish(HOT, b"relayed")
        await writer.flush()
        assert b"relayed" in bodies(await liar.receiver.say())
        assert writer.statistics.connects == 1


@pytest.mark.req("HUB-22")
async def test_a_lane_that_did_not_begin_is_not_waited_for() -> None:
    async with (
        alone(msgspec.structs.replace(LANES, retry_s=0.001)) as scene,
        listening(scene.gateway.address, "busy") as busy,
        weft.connect(scene.gateway.address, name="writer") as writer,
    ):
        asking = asyncio.ensure_future(writer.direct(HOT))
        await busy.serve(await ready(busy.receiver, busy.port), begins=False)
        with pytest.raises(NotDirect, match="closed the connection"):
            await asking
        # The gateway tries again by itself.
        await busy.serve(await ready(busy.receiver, busy.port))
        await writer.direct(HOT)
        await writer.publish(HOT, b"by the lane")
        assert (await busy.next()).kind == Kind.LANE
        assert (await busy.next()).body == b"by the lane"
        # Nothing was said of the lane that did not begin.
        assert set(words(await busy.receiver.say())) == {"switch"}


@pytest.mark.req("HUB-21")
async def test_a_port_of_somebody_else_gets_no_message_and_no_key() -> None:
    async with (
        alone() as scene,
        listening(scene.gateway.address, "liar") as liar,
        listening(scene.gateway.address, "innocent") as innocent,
        weft.connect(scene.gateway.address, name="writer") as writer,
    ):
        # The innocent does not hear it: what it is sent it was sent because of the liar.
        await innocent.receiver.say(encode(Kind.UNSUBSCRIBE, HOT.encode()))
        asking = asyncio.ensure_future(writer.direct(HOT))
        invitation = await ready(liar.receiver, innocent.port)
        shown = await innocent.next()
        assert fields(shown)["word"] == "hello"
        assert invitation["key"] not in shown.body
        innocent.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with pytest.raises(NotDirect):
            await asking
        await writer.publish(HOT, b"relayed")
        await writer.flush()
        assert bodies(await liar.receiver.say()) == [b"relayed"]
        assert innocent.frames.empty()


@pytest.mark.req("HUB-2", "HUB-21")
async def test_only_the_host_that_the_gateway_sees_is_offered() -> None:
    async with (
        alone() as scene,
        listening(scene.gateway.address, "first") as first,
        knowing(scene.gateway.address, "writer") as writer,
    ):
        asking = asyncio.ensure_future(writer.offered())
        await ready(first.receiver, first.port)
        [offer] = await asking
        assert offer["address"] == f"127.0.0.1:{first.port}"


@pytest.mark.req("HUB-21")
@pytest.mark.parametrize(
    "unix", ["10.0.0.1:80", "/run/dbus/system_bus_socket", f"weft-lane-{'0' * 33}"]
)
async def test_no_other_socket_of_a_machine_is_offered(unix: str) -> None:
    async with alone() as scene, listening(scene.gateway.address, "first") as first:
        async with knowing(scene.gateway.address, "writer") as writer:
            await writer.ask()
            await ready(first.receiver, first.port, unix)
            assert errors(await first.receiver.say()) == ["BadOption"]
            assert words(await writer.say()) == []
        assert await scene.refused("BadOption") == 1


@pytest.mark.req("HUB-2", "HUB-21")
async def test_nobody_takes_the_port_of_another_connection() -> None:
    async with (
        alone() as scene,
        listening(scene.gateway.address, "first") as first,
        knowing(scene.gateway.address, "writer") as writer,
    ):
        asking = asyncio.ensure_future(writer.offered())
        await ready(first.receiver, first.port)
        await asking
        async with (
            listening(scene.gateway.address, "second") as second,
            knowing(scene.gateway.address, "other") as other,
        ):
            await other.ask()
            await ready(second.receiver, first.port)
            assert errors(await second.receiver.say()) == ["NotYours"]
            assert await scene.refused("NotYours") == 1
            assert "offer" not in words(await other.say())


@pytest.mark.req("HUB-22")
@pytest.mark.parametrize("count", [0, RECEIVERS_MAX + 1, 100])
async def test_an_offer_of_too_many_lanes_is_declined(count: int) -> None:
    async with besieged() as scene, weft.connect(scene.gateway.address, name="writer") as writer:
        entry = {"receiver": 1, "name": "one", "inbox": "_INBOX.one.", "unix": "", "encrypt": False}
        entry |= {"address": "127.0.0.1:1", "ticket": b"ticket", "key": bytes(32), "answers": True}
        offer = lane_frame("offer", HOT.encode(), lanes=[entry] * count, ttl_s=1.0, reason="")
        lanes = writer._engine.lanes
        lanes.word(offer)
        assert not lanes._offers._tasks
        await writer.publish(HOT, b"relayed")
        assert await scene.next() == b"relayed"
        await scene.check()
