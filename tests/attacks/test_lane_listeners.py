"""Those who come to a client's listener without a right to, or with one that they overstep.

Each is sent away and counted; the client keeps its connection, and others still reach it.
"""

import asyncio
import struct

import pytest
from tests.attacks.lane_stranger import HOT, besieged, hello, knowing, prove, proven, words
from tests.journeys.raw import Raw, dialled, fields

import weft
from weft.client.lanes.listener import STRANGERS_MAX
from weft.wire.frames import Kind, encode
from weft.wire.lane_messages import lane_frame

CROWD = 1000


def huge(size: int) -> bytes:
    """The head of a frame that claims to be so long."""
    return struct.pack("<IBBBB", size, Kind.LANE, 0, 0, 0) + bytes(24)


STRANGE = {
    "garbage": b"\xff\xfe\xfd\xfc" * 1000,
    "zeros": bytes(64),
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
    "huge frame": huge(1 << 31),
    "big first frame": huge(4096),
    "message": encode(Kind.MESSAGE, HOT.encode(), b"let me in"),
    "greeting of a gateway's": encode(Kind.CONNECT, b"default"),
    "no word": encode(Kind.LANE, HOT.encode(), b""),
    "word of another place": lane_frame("direct", HOT.encode()),
    "proof without a ticket": lane_frame("prove", HOT.encode(), proof=bytes(32)),
    "ticket of nobody": lane_frame("hello", HOT.encode(), ticket=b"mine", nonce=bytes(32)),
    "hello without a nonce": lane_frame("hello", HOT.encode(), ticket=b"mine"),
}


async def is_sent_away(lane: Raw) -> bool:
    """Say if the connection is over, and nothing was said but that it is refused."""
    return set(words(await lane.to_the_end())) <= {"refused"}


@pytest.mark.req("HUB-21")
@pytest.mark.parametrize("what", STRANGE)
async def test_strangers_at_a_listener_are_sent_away(what: str) -> None:
    async with besieged() as scene, knowing(scene.gateway.address, "writer") as writer:
        [offer] = await writer.offered()
        async with dialled(offer["address"]) as lane:
            await lane.send(STRANGE[what])
            assert await is_sent_away(lane)
        await scene.until_turned_away(1)
        await scene.check()


@pytest.mark.req("HUB-21")
async def test_a_thousand_silent_strangers_keep_nobody_out() -> None:
    async with besieged() as scene, knowing(scene.gateway.address, "writer") as writer:
        [offer] = await writer.offered()
        crowd = [await Raw.dial(offer["address"]) for _ in range(CROWD)]
        try:
            await scene.until_turned_away(CROWD - STRANGERS_MAX)
            async with dialled(offer["address"]) as lane:
                served = await hello(lane, offer)
                assert served is not None
                await prove(lane, served, offer)
                await lane.next(Kind.LANE)
                await writer.switch(offer["receiver"], 1)
                await lane.send(lane_frame("switch", number=1) + writer.by_lane(b"by a lane"))
                assert await scene.next() == b"by a lane"
        finally:
            for each in crowd:
                each.close()


@pytest.mark.req("HUB-21")
async def test_a_ticket_without_its_key_is_worth_nothing() -> None:
    async with besieged() as scene, knowing(scene.gateway.address, "writer") as writer:
        [offer] = await writer.offered()
        async with dialled(offer["address"]) as thief:
            served = await hello(thief, offer)
            assert served is not None
            await prove(thief, served, offer | {"key": bytes(32)})
            assert words(await thief.to_the_end()) == ["refused"]
        await scene.until_turned_away(1)
        await scene.check()


@pytest.mark.req("HUB-21")
async def test_what_proved_a_ticket_proves_nothing_again() -> None:
    async with besieged() as scene, knowing(scene.gateway.address, "writer") as writer:
        [offer] = await writer.offered()
        async with dialled(offer["address"]) as lane, dialled(offer["address"]) as replayed:
            served = await hello(lane, offer)
            assert served is not None
            proof = await prove(lane, served, offer)
            await lane.next(Kind.LANE)
            again = await hello(replayed, offer)
            assert again is not None
            assert fields(again)["word"] == "refused"
            await replayed.send(proof)
            assert await is_sent_away(replayed)
            await scene.until_turned_away(1)
            await scene.check()


@pytest.mark.req("HUB-21")
async def test_a_ticket_that_is_too_old_is_refused() -> None:
    async with besieged() as scene, knowing(scene.gateway.address, "writer") as writer:
        [offer] = await writer.offered()
        listener = scene.reader._engine.lanes._invitations.listener
        invitation = listener._invitations[offer["ticket"]]
        ended = asyncio.get_running_loop().time() - 0.001
        listener.invite(invitation._replace(ends_at=ended))
        async with dialled(offer["address"]) as lane:
            refusal = await hello(lane, offer)
            assert refusal is not None
            assert "too old" in fields(refusal)["reason"]
        await scene.until_turned_away(1)
        await scene.check()


@pytest.mark.req("HUB-21")
@pytest.mark.parametrize("what", ["another subject", "another's name", "a frame of no lane"])
async def test_whoever_oversteps_its_ticket_loses_its_lane_alone(what: str) -> None:
    async with (
        besieged() as scene,
        weft.connect(scene.gateway.address, name="good") as good,
        knowing(scene.gateway.address, "writer") as writer,
    ):
        scene.reader.subscribe("secret", lambda heard: scene.heard.put_nowait(heard.payload))
        await good.direct(HOT)
        async with proven(writer) as lane:
            wrong = {
                "another subject": writer.by_lane(b"!", "secret"),
                "another's name": writer.by_lane(b"!", number=writer.number + 1),
                "a frame of no lane": encode(Kind.SUBSCRIBE, b"secret"),
            }
            number = scene.reader._engine.session.publisher
            await writer.switch(number, 1)
            await lane.send(lane_frame("switch", number=1) + wrong[what])
            assert set(words(await lane.to_the_end())) <= {"ack"}
        assert scene.turned_away == 1
        await good.direct(HOT)
        await good.publish(HOT, b"by the other lane")
        assert await scene.next() == b"by the other lane"
        await scene.check()
