"""How many channels there may be, and what a gateway keeps of them, over real sockets."""

import asyncio
from pathlib import Path

import pytest
from tests.broker.locksmith import record
from tests.gateway.channel_talk import CHESS, Caller, Place, keys, proof_of
from tests.gateway.meshes import SERVICE, gateway, linked
from tests.journeys.raw import greeted

import weft
from weft.broker.limits import Limits
from weft.errors import ChannelContested, ChannelExists
from weft.gateway.config.mesh_settings import MeshSettings
from weft.gateway.requests import channel_quotas
from weft.mesh.channels import coordinator as fabric_channels
from weft.wire.frames import Flag, Kind, encode


async def opens(caller: Caller) -> bool:
    """Say if a protected channel can be opened now."""
    try:
        await caller.open(**keys("another"))
    except (ChannelContested, ChannelExists):
        return False
    return True


async def test_a_gateway_holds_so_many_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric_channels, "HELD_HERE_MAX", 2)
    async with Place() as place:
        alice, bob = await place.caller(), await place.caller()
        await alice.open("rooms.0")
        channel = await alice.open("rooms.1")
        assert await bob.refused("open", name="rooms.2") == "TooMany"
        assert (await bob.ask("join", name="rooms.0"))["name"] == "rooms.0"
        await alice.ask("leave", id=channel)
        assert await bob.open("rooms.2")


async def test_a_list_that_is_too_long_is_refused_and_a_shorter_one_is_told() -> None:
    async with Place(limits=Limits(body_bytes=1024)) as place:
        caller = await place.caller()
        for number in range(20):
            await caller.open(f"rooms.{number}")
        assert "ask for less" in str(await caller.error("list"))
        assert len((await caller.ask("list", limit=2))["channels"]) == 2


async def test_a_connection_is_a_member_of_so_many() -> None:
    async with Place() as place:
        alice, bob = await place.caller(), await place.caller()
        for number in range(100):
            await alice.open(f"rooms.{number}")
        assert await alice.refused("open", name="rooms.100") == "TooMany"
        # Nothing is left of what nobody was a member of.
        assert await bob.open("rooms.100")
        assert await alice.refused("join", name="rooms.100") == "TooMany"
        await bob.open(**keys())
        challenge = (await alice.ask("join", name=CHESS))["challenge"]
        assert await alice.refused("prove", **proof_of(challenge)) == "TooMany"


@pytest.mark.req("RLY-11")
async def test_without_a_majority_no_protected_channel_is_opened_and_the_connection_goes_on() -> (
    None
):
    async with Place(mesh=MeshSettings(gateways=3)) as place:
        alice = await place.caller()
        error = await alice.error("open", name=CHESS, **keys())
        assert type(error).__name__ == "NoMajority"
        assert "1 of 3 gateways agree" in str(error)
        assert await alice.listed() == []
        assert await alice.open()


@pytest.mark.req("RLY-11")
async def test_a_gateway_that_starts_again_keeps_what_it_promised(tmp_path: Path) -> None:
    async with Place(tmp_path) as place:
        first = await (await place.caller()).open(**keys())
    async with Place(tmp_path) as place:
        bob = await place.caller()
        assert await bob.refused("open", name=CHESS, **keys("another")) == "ChannelContested"
        assert await bob.open("games.go")
    assert first in (tmp_path / f"channels-{SERVICE}.log").read_text()


@pytest.mark.req("RLY-11")
async def test_a_gateway_that_starts_again_counts_those_that_it_knew(tmp_path: Path) -> None:
    async with (
        gateway("paris") as paris,
        Place(tmp_path, mesh=MeshSettings(join=(paris.address,))) as place,
    ):
        await linked(paris, place.gateway)
        assert await (await place.caller()).open(**keys())
    async with Place(tmp_path) as place:
        alone = await place.caller()
        error = await alone.error("open", name="games.go", **keys(name="games.go"))
        assert type(error).__name__ == "NoMajority"
        assert "1 of 2 gateways agree" in str(error)


@pytest.mark.req("RLY-11")
async def test_what_cannot_be_written_down_is_no_majority(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    async with Place(data) as place:
        alice = await place.caller()
        data.rename(tmp_path / "gone")
        error = await alice.error("open", name=CHESS, **keys())
        assert type(error).__name__ == "NoMajority"
        assert "0 of 1 gateways agree" in str(error)
        assert "london cannot store its lease" in str(error)
        # Without a password nobody has to promise anything.
        assert await alice.open("games.go")
        (tmp_path / "gone").rename(data)
        assert await alice.open(**keys())


@pytest.mark.req("RLY-19")
async def test_who_is_gone_before_it_is_open_leaves_no_channel() -> None:
    async with (
        gateway("paris") as paris,
        Place(mesh=MeshSettings(join=(paris.address,))) as place,
    ):
        await linked(paris, place.gateway)
        bob = await place.caller()
        async with greeted(place.gateway.address, SERVICE) as raw:
            body = weft.Message(name=CHESS, **keys()).encode()
            subject, reply = b"_WEFT.ask.channel.open", raw.inbox + b".1"
            await raw.send(encode(Kind.MESSAGE, subject, body, reply, Flag.REQUEST))
        while not await opens(bob):
            await asyncio.sleep(0.01)
        assert (await bob.ask("show", name=CHESS))["members"] == 1


async def test_where_promises_cannot_be_recalled_that_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / f"channels-{SERVICE}.log").mkdir()
    async with Place(tmp_path) as place:
        assert await (await place.caller()).open(**keys())
    assert "lease votes of channels cannot be restored" in caplog.text


async def test_one_key_has_its_share_of_channels_over_however_many_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_quotas, "HELD_HERE_MAX", 6)
    records = [record("greedy"), record("other")]
    async with Place(tmp_path, *records) as place:
        greedy = [await place.caller(key="greedy") for _ in range(2)]
        other = await place.caller(key="other")
        mine = [await greedy[number % 2].open(f"mine.{number}") for number in range(3)]
        error = await greedy[1].error("open", name="mine.3")
        assert "this key has 3 channels with members here, which is its share of 6" in str(error)
        assert await other.open("rooms.0")
        # To join what others hold costs nothing, and what ended makes room.
        assert (await greedy[0].ask("join", name="rooms.0"))["name"] == "rooms.0"
        await greedy[0].ask("leave", id=mine[0])
        assert await greedy[1].open("mine.3")


async def test_one_key_has_its_share_of_openings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_quotas, "OPENINGS_MAX", 1)
    async with Place(tmp_path, record("one")) as place:
        caller = await place.caller(key="one")
        # Each is over before the next begins.
        for number in range(3):
            assert await caller.open(f"rooms.{number}")
