"""Channels of the client with real gateways: what is promised to users."""

import asyncio

import pytest
from tests.client.conftest import RunningGateway
from tests.client.connection.test_reconnect import QUICK, Statuses

import weft
from weft.client.channels.requests import OPEN_MIN_S
from weft.client.status import What
from weft.errors import ChannelClosed, ChannelExists, NotKnown, WrongPassword

HORSE = "correct horse"


async def test_members_hear_each_other_and_nobody_else_does(gateway: str) -> None:
    async with weft.connect(gateway) as alice, weft.connect(gateway) as bob:
        plain = bob.subscribe(">")
        await plain.ready()
        room = await alice.open_channel("games.chess", HORSE)
        table = await bob.join_channel("games.chess", HORSE)
        moves = table.subscribe("moves.>")
        await moves.ready()
        await room.publish("moves.white", "e4", acknowledge=True)
        message = await moves.next(10)
        assert (table.subject_of(message), message.text) == ("moves.white", "e4")
        await alice.publish("end", b"", acknowledge=True)
        assert (await plain.next(10)).subject == "end"
        with pytest.raises(ChannelExists):
            await alice._channels._open(room._membership)


async def test_a_wrong_password_is_told(gateway: str) -> None:
    async with weft.connect(gateway) as alice, weft.connect(gateway) as bob:
        await alice.open_channel("room", HORSE)
        for wrong in ("battery staple", None):
            with pytest.raises(WrongPassword):
                await bob.join_channel("room", wrong)


async def test_a_channel_of_requests_and_answers(gateway: str) -> None:
    async with weft.connect(gateway) as alice, weft.connect(gateway) as bob:
        room = await alice.open_channel("room")
        served = room.subscribe("clock", lambda message: message.respond({"now": 1}))
        await served.ready()
        joined = await bob.join_channel("room")
        assert (await joined.send_request("clock", {}))["now"] == 1
        assert [each["now"] for each in await joined.gather("clock", {}, count=1)] == [1]


async def test_whoever_opened_it_closes_it_for_all(gateway: str) -> None:
    async with weft.connect(gateway) as alice, weft.connect(gateway) as bob:
        room = await alice.open_channel("room")
        joined = await bob.join_channel("room")
        heard = joined.subscribe()
        await heard.ready()
        await room.close()
        with pytest.raises(ChannelClosed):
            await heard.next(10)
        assert isinstance(joined.error, ChannelClosed)
        assert room.error is None
        with pytest.raises(NotKnown):
            await bob.channel_facts("room")


async def test_channels_are_listed_with_their_members(gateway: str) -> None:
    async with weft.connect(gateway, name="me.1") as alice, weft.connect(gateway) as bob:
        room = await alice.open_channel("room")
        await bob.join_channel("room")
        found = await bob.channels()
        assert [(each.name, each.id, each.members, each.gateways) for each in found] == [
            ("room", room.id, 2, 1)
        ]
        assert found.more == 0
        facts = await bob.channel_facts("room")
        assert (facts.owner, facts.members, facts.places[0].members) == ("me.1", 2, 2)


@pytest.mark.parametrize("password", [None, HORSE])
async def test_all_come_back_after_the_gateway_has_started_anew(
    running: RunningGateway, password: str | None
) -> None:
    async with (
        weft.connect(running.address, **QUICK) as alice,
        weft.connect(running.address, **QUICK) as bob,
    ):
        room = await alice.open_channel("room", password)
        joined = await bob.join_channel("room", password)
        heard = joined.subscribe("a")
        await heard.ready()
        await asyncio.to_thread(running.stop)
        await asyncio.to_thread(running.start)
        await joined._channels.until_joined(joined._membership)
        # Whoever joined is in it only if it was opened again, and so is heard from the first on.
        await room.publish("a", "again")
        assert (await heard.next(OPEN_MIN_S)).text == "again"
        assert (room.id == joined.id, joined.error) == (True, None)


async def test_many_channels_come_back_together(running: RunningGateway) -> None:
    async with weft.connect(running.address, **QUICK) as alice:
        rooms = [await alice.open_channel(f"room.{number}") for number in range(12)]
        await asyncio.to_thread(running.stop)
        await asyncio.to_thread(running.start)
        for room in rooms:
            await room.publish("a", "again", acknowledge=True)


async def test_a_channel_that_is_gone_is_told_to_whoever_only_joined(
    running: RunningGateway,
) -> None:
    statuses = Statuses()
    async with weft.connect(running.address, on_status=statuses.put, **QUICK) as bob:
        async with weft.connect(running.address, **QUICK) as alice:
            await alice.open_channel("room", HORSE)
            joined = await bob.join_channel("room", HORSE)
        bob_only = joined.subscribe()
        await bob_only.ready()
        await asyncio.to_thread(running.stop)
        await asyncio.to_thread(running.start)
        lost = await statuses.wait_for(What.REFUSED)
        assert isinstance(lost.error, WrongPassword)
        assert not bob_only.is_open


def test_the_blocking_face_opens_and_joins(gateway: str) -> None:
    with (
        weft.Connection(gateway) as alice,
        weft.Connection(gateway) as bob,
        alice.open_channel("room", HORSE) as room,
        bob.join_channel("room", HORSE) as joined,
    ):
        heard = joined.subscribe()
        room.publish("a", "hello")
        assert heard.next(10).text == "hello"
        assert [each.name for each in alice.channels()] == ["room"]
        assert alice.channel_facts("room").members == 2
