"""Channels of several gateways, each in processes of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.gateway.meshes import LIMIT_S
from tests.journeys.mesh_of import Proxy, client, gateway, killed_at_the_end, linked, mesh_of
from tests.journeys.running import RunningGateway, kill, stopped

import weft
from weft.errors import ChannelExists, ChannelLost, NoMajority, WeftError, WrongPassword

NAME = "room"
APPLE = "apple"
PEAR = "pear"


class Apart(NamedTuple):
    """Two gateways that have never met, and what will bring them together."""

    ann: RunningGateway
    bob: RunningGateway
    proxy: Proxy

    async def heal(self) -> None:
        """Let them find each other."""
        self.proxy.lead_to(self.ann.address)
        await linked(self.ann, self.bob)


@asynccontextmanager
async def apart(folder: Path) -> AsyncIterator[Apart]:
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(Proxy())
        ann = stack.enter_context(gateway(folder, "ann"))
        bob = stack.enter_context(gateway(folder, "bob", f'join = ["{proxy.address}"]'))
        yield Apart(ann, bob, proxy)


class Talker:
    """A member of a channel who says the same again and again, and keeps what it hears."""

    def __init__(self, channel: weft.AsyncChannel, word: str) -> None:
        self.channel = channel
        self.word = word
        self.heard: list[str] = []
        self.error: WeftError | None = None

    async def listen(self) -> None:
        """Hear everything, until the channel is lost."""
        try:
            async for message in self.channel.subscribe(">"):
                self.heard.append(message["word"])
        except WeftError as error:
            self.error = error

    async def talk(self) -> None:
        """Say it until the channel is lost."""
        while self.error is None:
            try:
                await self.channel.publish("talk", weft.Message(word=self.word))
            except WeftError as error:
                self.error = error
            await asyncio.sleep(0.005)


def kill_at_once(made: RunningGateway) -> None:
    """End a gateway with its worker, which would say goodbye if it found itself alone."""
    worker = made.worker("default")
    with stopped(made.front):
        kill(worker)
        made.kill()


async def until_heard(talker: Talker, count: int) -> None:
    """Wait until somebody has heard so much."""
    async with asyncio.timeout(LIMIT_S):
        while len(talker.heard) < count:
            await asyncio.sleep(0.01)


@pytest.mark.req("RLY-13", "RLY-14")
async def test_two_channels_that_were_opened_apart_never_mix(tmp_path: Path) -> None:
    async with apart(tmp_path) as mesh, client(mesh.ann) as here, client(mesh.bob) as there:
        one = Talker(await here.open_channel(NAME, password=APPLE), APPLE)
        other = Talker(await there.open_channel(NAME, password=PEAR), PEAR)
        talkers = (one, other)
        tasks = [asyncio.create_task(each.listen()) for each in talkers]
        tasks += [asyncio.create_task(each.talk()) for each in talkers]
        for each in talkers:
            await until_heard(each, 20)
        await mesh.heal()
        async with asyncio.timeout(LIMIT_S):
            while one.error is None and other.error is None:
                await asyncio.sleep(0.01)
        loser, winner = (one, other) if one.error is not None else (other, one)
        # Whoever stays goes on talking, and is not heard by those who lost.
        await until_heard(winner, len(winner.heard) + 50)
        assert isinstance(loser.error, ChannelLost)
        assert (set(one.heard), set(other.heard)) == ({APPLE}, {PEAR})
        assert winner.error is None
        connection = there if loser is other else here
        with pytest.raises(WrongPassword):
            await connection.join_channel(NAME, password=loser.word)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.req("RLY-13")
async def test_channels_without_a_password_grow_together(tmp_path: Path) -> None:
    async with apart(tmp_path) as mesh, client(mesh.ann) as here, client(mesh.bob) as there:
        one = Talker(await here.open_channel(NAME), "here")
        other = Talker(await there.open_channel(NAME), "there")
        assert one.channel.id == other.channel.id
        tasks = [asyncio.create_task(each.listen()) for each in (one, other)]
        tasks += [asyncio.create_task(each.talk()) for each in (one, other)]
        await until_heard(one, 20)
        await mesh.heal()
        async with asyncio.timeout(LIMIT_S):
            while not {"here", "there"} == set(one.heard) == set(other.heard):
                await asyncio.sleep(0.01)
        assert (one.error, other.error) == (None, None)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.req("RLY-10", "RLY-11", "RLY-14")
async def test_a_channel_is_joined_at_any_gateway_by_its_password(tmp_path: Path) -> None:
    with mesh_of(tmp_path, "ann", "bob") as (ann, bob):
        await linked(ann, bob)
        async with client(ann) as here, client(bob) as there:
            room = await here.open_channel(NAME, password=APPLE)
            with pytest.raises(WrongPassword):
                await there.join_channel(NAME, password=PEAR)
            with pytest.raises(ChannelExists):
                await there.open_channel(NAME, password=PEAR)
            table = await there.join_channel(NAME, password=APPLE)
            assert table.id == room.id
            heard = table.subscribe("moves.>")
            await heard.ready()
            async with asyncio.timeout(LIMIT_S):
                # A subscription is known elsewhere a moment after it is made.
                while True:
                    await room.publish("moves.white", weft.Message(move="e4"))
                    try:
                        message = await heard.next(0.2)
                        break
                    except TimeoutError:
                        continue
            assert (table.subject_of(message), message["move"]) == ("moves.white", "e4")
            status = bob.status()["services"]["default"]["status"]
            assert (status["channels_here"], status["channels"]) == (1, 1)


@pytest.mark.req("RLY-12")
async def test_a_channel_goes_on_when_the_gateway_dies_where_it_was_opened(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        ann = stack.enter_context(killed_at_the_end(tmp_path, "ann"))
        join = f'join = ["{ann.address}"]'
        bob = stack.enter_context(gateway(tmp_path, "bob", join))
        cat = stack.enter_context(
            gateway(tmp_path, "cat", f'join = ["{ann.address}", "{bob.address}"]')
        )
        await linked(ann, bob, cat)
        there = await stack.enter_async_context(client(bob))
        elsewhere = await stack.enter_async_context(client(cat))
        async with client(ann) as here:
            room = await here.open_channel(NAME, password=APPLE)
            table = await there.join_channel(NAME, password=APPLE)
            kill_at_once(ann)
        await linked(bob, cat)
        async with asyncio.timeout(LIMIT_S):
            while "ann" in {each.gateway for each in (await there.channel_facts(NAME)).places}:
                await asyncio.sleep(0.05)
        late = await elsewhere.join_channel(NAME, password=APPLE)
        assert late.id == table.id == room.id


@pytest.mark.req("RLY-15")
async def test_a_minority_opens_no_protected_channel_and_names_who_is_missing(
    tmp_path: Path,
) -> None:
    with (
        killed_at_the_end(tmp_path, "ann") as ann,
        gateway(tmp_path, "bob", f'join = ["{ann.address}"]') as bob,
    ):
        await linked(ann, bob)
        async with client(bob) as there:
            with_both = await there.open_channel("hall", password=APPLE)
            assert with_both.is_open
            kill_at_once(ann)
            with pytest.raises(NoMajority, match=r"1 of 2 gateways agree.*ann"):
                await there.open_channel(NAME, password=APPLE)
            # Without a password it is there all the same.
            assert (await there.open_channel(NAME)).is_open


@pytest.mark.req("RLY-15")
async def test_a_gateway_that_stands_still_is_not_waited_for_longer_than_stated(
    tmp_path: Path,
) -> None:
    with mesh_of(tmp_path, "ann", "bob", "cat") as (ann, bob, cat):
        await linked(ann, bob, cat)
        async with client(ann) as here:
            with cat.stopped_worker("default"):
                room = await here.open_channel(NAME)
                assert room.silent == ("cat",)
                assert (await here.open_channel("hall", password=APPLE)).is_open
