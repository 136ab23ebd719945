"""Lanes as a gateway speaks of them, over real sockets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.broker.locksmith import key_of, record
from tests.gateway.meshes import SERVICE, gateway, linked, status, wanted
from tests.journeys.raw import ANSWER, REQUEST, Raw, dialled, fields, greeting, message, subscribe

import weft
from weft.client.publish.encode import message_frame
from weft.errors import NotAllowed, NotDirect
from weft.gateway.config.mesh_settings import MeshSettings
from weft.gateway.config.settings import JournalSettings, Settings
from weft.gateway.gateway import Gateway
from weft.gateway.keys.key_file import change_keys
from weft.lanes.settings import LaneRule, LaneSettings
from weft.wire.frames import Frame, Kind, encode
from weft.wire.lane_messages import lane_frame
from weft.wire.lane_tickets import TICKET_S
from weft.wire.message.message import Message

HOT = "prices.fast"
FOUND = "_WEFT.PIPELINE.hot_routes"


@asynccontextmanager
async def knowing(made: Gateway, name: str, *patterns: str) -> AsyncIterator[Raw]:
    """Somebody who knows lanes."""
    async with dialled(made.address) as raw:
        await raw.send(greeting(SERVICE, name, lanes=1))
        welcome = await raw.next(Kind.WELCOME)
        raw.inbox = fields(welcome)["inbox"].encode()
        for pattern in patterns:
            await raw.send(subscribe(pattern))
            await raw.next(Kind.OK)
        yield raw


async def asked(raw: Raw, question: str, **about: Any) -> dict[str, Any]:
    """What the gateway answers, or the error that it gives; what else comes is dropped."""
    body = Message.from_dict(about).encode()
    reply = raw.inbox + b".ask"
    await raw.send(encode(Kind.MESSAGE, f"_WEFT.ask.{question}".encode(), body, reply, REQUEST))
    while True:
        frame = await raw.frame()
        assert frame is not None
        if frame.kind == Kind.ERROR or frame.subject == reply:
            return fields(frame)


async def word(raw: Raw, expected: str) -> dict[str, Any]:
    """The next word about lanes, which must be this."""
    while True:
        frame = await raw.frame()
        assert frame is not None
        if frame.kind == Kind.LANE:
            facts = fields(frame)
            assert facts.pop("word") == expected
            return facts


async def go_direct(ann: Raw, *receivers: Raw) -> dict[str, Any]:
    """Bring what ann publishes to lanes; what she was offered."""
    assert (await asked(ann, "lane.direct", subject=HOT))["state"] == "asked"
    for port, receiver in enumerate(receivers, 4000):
        invite = await word(receiver, "invite")
        await receiver.send(lane_frame("ready", ticket=invite["ticket"], port=port, unix=""))
    offer = await word(ann, "offer")
    await ann.send(lane_frame("direct", HOT.encode()))
    return offer


@pytest.mark.req("HUB-10", "HUB-13", "HUB-22")
async def test_a_route_becomes_direct_and_comes_back_for_a_new_subscriber() -> None:
    async with (
        gateway("london") as made,
        knowing(made, "bob", HOT) as bob,
        knowing(made, "ann") as ann,
        knowing(made, "eve") as eve,
    ):
        offer = await go_direct(ann, bob)
        [lane] = offer["lanes"]
        assert (lane["name"], lane["address"], lane["encrypt"]) == ("bob", "127.0.0.1:4000", False)
        assert offer["ttl_s"] == TICKET_S
        [row] = (await asked(ann, "routes"))["routes"]
        assert (row["state"], row["receivers"]) == ("direct", ["bob"])
        await eve.send(subscribe(HOT))
        assert await word(ann, "withdraw") == {"reason": "eve subscribed"}
        await ann.send(lane_frame("withdrawn", HOT.encode()) + message(HOT, b"first"))
        await eve.next(Kind.OK)
        assert (await eve.next()).body == b"first"
        numbers = await status(made)
        assert (numbers["promotions"], numbers["demotions"]) == (1, {"audience": 1})
        assert (numbers["lanes"], numbers["routes_direct"]) == (1, 0)


@pytest.mark.req("HUB-10")
async def test_a_rate_over_the_threshold_is_enough() -> None:
    lanes = LaneSettings(rules=(LaneRule(pattern="prices.>", messages_s=0.1, hold_s=0.1),))
    async with (
        gateway("london", lanes=lanes) as made,
        knowing(made, "bob", HOT) as bob,
        knowing(made, "ann") as ann,
    ):
        publishing = asyncio.create_task(_publish(ann))
        assert (await word(bob, "invite"))["name"] == "ann"
        publishing.cancel()


async def _publish(raw: Raw) -> None:
    while True:
        await raw.send(message(HOT, b"x"))
        await asyncio.sleep(0.05)


@pytest.mark.req("HUB-20")
async def test_the_publisher_is_told_that_a_receiver_has_gone() -> None:
    async with gateway("london") as made, knowing(made, "ann") as ann:
        async with knowing(made, "bob", HOT) as bob:
            await go_direct(ann, bob)
            assert (await asked(ann, "routes"))["routes"][0]["state"] == "direct"
        assert await word(ann, "withdraw") == {"reason": "receiver bob is gone"}
        assert (await word(ann, "over"))["reason"] == "bob is gone"


@pytest.mark.req("HUB-22")
async def test_tails_come_among_the_messages_of_their_sender() -> None:
    async with (
        gateway("london") as made,
        knowing(made, "bob", HOT) as bob,
        knowing(made, "ann") as ann,
    ):
        [lane] = (await go_direct(ann, bob))["lanes"]
        tail = bytearray(encode(Kind.TAIL, HOT.encode(), b"2"))
        tail[8:12] = lane["receiver"].to_bytes(4, "little")
        await ann.send(message(HOT, b"1") + bytes(tail) + message(HOT, b"3"))
        frames = [await bob.frame() for _ in range(3)]
        assert [frame.body for frame in frames if frame is not None] == [b"1", b"2", b"3"]


@pytest.mark.req("HUB-2")
async def test_a_client_is_given_an_address_of_its_own() -> None:
    async with (
        gateway("london") as made,
        knowing(made, "ann") as ann,
        knowing(made, "bob") as bob,
    ):
        assert await asked(ann, "lane.address", port=4000) == {"address": "127.0.0.1:4000"}
        assert (await asked(bob, "lane.address", port=4000))["name"] == "NotYours"
        assert (await asked(bob, "lane.address", port=0))["name"] == "BadOption"
        assert await asked(bob, "lane.address", port=4001) == {"address": "127.0.0.1:4001"}


async def test_the_answer_to_a_question_has_a_limit() -> None:
    async with gateway("london") as made, knowing(made, "ann") as ann:
        assert (await asked(ann, "routes", limit=0))["name"] == "BadOption"
        await ann.say(message("a", b"x"), message("b", b"x"))
        answer = await asked(ann, "routes", limit=1)
        assert (len(answer["routes"]), answer["more"]) == (1, 1)
        number = answer["routes"][0]["connection"]
        assert len((await asked(ann, "routes", connection=number))["routes"]) == 2
        assert len((await asked(ann, "routes", subject="b"))["routes"]) == 1


async def test_clients_may_not_ask_for_routes(tmp_path: Path) -> None:
    ann = record("ann", "client", publish=["a"], service=SERVICE)
    change_keys(tmp_path, lambda _: (ann,))
    async with (
        gateway("london", data=str(tmp_path)) as made,
        weft.connect(made.address, service=SERVICE, key=key_of("ann")) as client,
    ):
        with pytest.raises(NotAllowed):
            await client.send_request("_WEFT.ask.routes", {})


async def test_other_settings_hold_at_once() -> None:
    async with (
        gateway("london") as made,
        knowing(made, "bob", HOT) as bob,
        knowing(made, "ann") as ann,
    ):
        await go_direct(ann, bob)
        off = LaneSettings(enabled=False)
        assert made.change(Settings(name="london", services=(SERVICE,), lanes=off)) == ["listen"]
        assert await word(ann, "withdraw") == {"reason": "lanes are off for this subject"}


async def test_what_is_kept_is_never_direct(tmp_path: Path) -> None:
    journal = JournalSettings(patterns=("prices.>",))
    async with (
        gateway("london", data=str(tmp_path), journal=journal) as made,
        knowing(made, "bob", HOT),
        knowing(made, "ann") as ann,
    ):
        assert await asked(ann, "lane.direct", subject=HOT) == {
            "state": "relayed",
            "reason": "journaled",
        }


async def find(made: Gateway) -> None:
    """Publish what the job finds, as it does."""
    row = {"service": SERVICE, "subject": HOT, "messages_s": 5000.0, "ttl_s": 60.0}
    async with weft.connect(made.address, service=SERVICE) as job:
        given = {"writer": "w", "batch": 0, "part": "p", "first": 0, "last": True}
        await job.send_request("_WEFT.ask.stage", {**given, "frames": message_frame(FOUND, row)})
        order = {"writer": "w", "batch": 0, "parts": ["p"], "rows": [1]}
        await job.send_request("_WEFT.ask.release", order)


@pytest.mark.req("SPK-5")
async def test_what_a_job_finds_at_one_gateway_changes_what_another_offers(tmp_path: Path) -> None:
    journal = JournalSettings(patterns=("kept.>",))
    async with (
        gateway("paris", data=str(tmp_path), journal=journal) as paris,
        gateway("rome", MeshSettings(join=(paris.address,))) as rome,
        knowing(rome, "bob", HOT) as bob,
        knowing(rome, "ann") as ann,
        weft.connect(paris.address, service=SERVICE) as looking,
    ):
        await linked(paris, rome)
        await wanted(looking, FOUND, "rome")
        await find(paris)
        publishing = asyncio.create_task(_publish(ann))
        await word(bob, "invite")
        publishing.cancel()
        [row] = (await asked(ann, "routes", subject=HOT))["routes"]
        assert row["reason"] == "hot_routes: 5,000 messages/s across the mesh"


async def test_whoever_does_not_know_lanes_hears_nothing_of_them() -> None:
    async with (
        gateway("london") as made,
        dialled(made.address) as old,
        knowing(made, "ann") as ann,
    ):
        await old.greet(SERVICE, "old")
        await old.say(subscribe(HOT))
        answer = await asked(ann, "lane.direct", subject=HOT)
        assert answer == {"state": "relayed", "reason": "receiver old does not accept lanes"}
        heard: list[Frame] = await old.say(encode(Kind.PING, flags=ANSWER))
        assert [frame.kind for frame in heard] == [Kind.PONG, Kind.OK]


async def test_a_service_may_have_rules_of_its_own() -> None:
    rules = (LaneRule(service="quiet", enabled=False),)
    settings = Settings(listen="127.0.0.1:0", lanes=LaneSettings(rules=rules))
    async with Gateway(settings=settings, workers="inline") as made:
        for service in ("quiet", "loud"):
            async with (
                weft.connect(made.address, service=service) as receiver,
                weft.connect(made.address, service=service) as publisher,
            ):
                await receiver.subscribe(HOT).ready()
                if service == "quiet":
                    with pytest.raises(NotDirect, match="lanes are off"):
                        await publisher.direct(HOT)
                else:
                    await publisher.direct(HOT)
