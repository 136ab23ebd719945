"""The blocking face's channels, shown with a scripted gateway."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest
from tests.client.channel_script import HORSE, ID, SECRET, answer, asked, check, let_in, say
from tests.client.conftest import Peer, ScriptedGateway
from tests.client.connection.test_engine import Scripted

import weft
from weft.errors import BadOption, NotOpen
from weft.wire.frames import Flag, Kind
from weft.wire.message.message import Message

Result = TypeVar("Result")


async def off(call: Callable[[], Result], peer: Peer, *verbs: str) -> Result:
    """Make a blocking call on another thread, while a gateway answers questions with nothing."""
    calling = asyncio.create_task(asyncio.to_thread(call))
    for verb in verbs:
        await answer(peer, verb)
    return await calling


async def connected(gateway: ScriptedGateway) -> tuple[weft.Connection, Peer]:
    connecting = asyncio.create_task(
        asyncio.to_thread(weft.Connection, gateway.address, backoff_first_s=0.001)
    )
    peer = await gateway.peer()
    return await connecting, peer


async def test_the_blocking_face_speaks_and_hears_in_a_channel(scripted: Scripted) -> None:
    async with scripted() as gateway:
        connection, peer = await connected(gateway)
        joining = asyncio.create_task(asyncio.to_thread(connection.join_channel, "room", HORSE))
        await check(peer, SECRET.verifier)
        room = await joining
        assert (room.name, room.id, room.is_protected, room.is_open) == ("room", ID, True, True)
        subscribing = asyncio.create_task(asyncio.to_thread(room.subscribe, "moves.*"))
        assert (await peer.confirm()).subject.decode() == f"_CHANNEL.{ID}.moves.*"
        moves = await subscribing
        room.publish("moves.white", b"e4")
        assert (await peer.frame(Kind.MESSAGE)).subject.decode() == f"_CHANNEL.{ID}.moves.white"
        say(peer, "moves.black", b"e5")
        message = await asyncio.to_thread(moves.next, 10)
        assert (room.subject_of(message), message.payload) == ("moves.black", b"e5")
        await off(room.leave, peer, "leave")
        with pytest.raises(NotOpen):
            room.publish("moves.white", b"d4")
        assert not moves.is_open
        peer.close()
        await asyncio.to_thread(connection.close)
        room.leave()


async def test_a_thread_that_speaks_waits_until_the_channel_is_joined_again(
    scripted: Scripted,
) -> None:
    async with scripted() as gateway:
        connection, peer = await connected(gateway)
        joining = asyncio.create_task(asyncio.to_thread(connection.join_channel, "room"))
        await let_in(peer)
        room = await joining
        peer.close()
        back = await gateway.peer()
        frame, _ = await asked(back, "join")
        saying = asyncio.create_task(asyncio.to_thread(room.publish, "a", b"x"))
        told = Message(id="f" * 32, name="room", protected=False)
        back.send(Kind.MESSAGE, frame.reply, told, flags=Flag.FROM_GATEWAY)
        assert (await back.frame(Kind.MESSAGE)).subject.decode() == f"_CHANNEL.{'f' * 32}.a"
        await saying
        await off(room.close, back, "close")
        back.close()
        await asyncio.to_thread(connection.close)


async def test_the_blocking_face_asks_in_a_channel_and_about_channels(scripted: Scripted) -> None:
    async with scripted() as gateway:
        connection, peer = await connected(gateway)
        opening = asyncio.create_task(asyncio.to_thread(connection.open_channel, "room"))
        await answer(peer, "open", id=ID, name="room", protected=False, silent=["b"])
        room = await opening
        assert room.silent == ("b",)
        for call in (
            lambda: room.send_request("clock", b"?"),
            lambda: room.gather("clock", b"?", count=1)[0],
        ):
            asking = asyncio.create_task(asyncio.to_thread(call))
            question = await peer.frame(Kind.MESSAGE)
            assert question.subject.decode() == f"_CHANNEL.{ID}.clock"
            peer.send(Kind.MESSAGE, question.reply, Message(now=1))
            assert (await asking)["now"] == 1
        with pytest.raises(BadOption, match="the password is empty"):
            connection.join_channel("other", "")
        listing = asyncio.create_task(asyncio.to_thread(connection.channels))
        assert (await answer(peer, "list", channels=[], more=False))["limit"] == 100
        assert await listing == []
        await off(lambda: connection.close_channel("other"), peer, "close")
        peer.close()
        with room:
            await asyncio.to_thread(connection.close)
