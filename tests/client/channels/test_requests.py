"""How a client opens, joins and leaves channels, shown with a scripted gateway."""

import asyncio
import logging

import pytest
from tests.client.channel_script import (
    CHALLENGE,
    HORSE,
    ID,
    OTHER_ID,
    SECRET,
    answer,
    asked,
    check,
    let_in,
    member,
    refuse,
    say,
    take_back,
    while_,
)
from tests.client.connection.test_engine import Scripted, meeting

import weft
from weft.errors import (
    BadOption,
    BadSubject,
    ChannelClosed,
    ChannelContested,
    ChannelExists,
    ConnectionLost,
    NotAllowed,
    NotOpen,
    ProtocolError,
    UsageError,
    WrongPassword,
)
from weft.wire.frames import Flag, Kind
from weft.wire.message.message import Message


async def test_a_channel_is_opened_by_its_name(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, _):
        script = answer(peer, "open", id=ID, name="room", protected=False, silent=["b"])
        question, room = await asyncio.gather(script, connection.open_channel("room"))
        assert question.to_dict() == {"name": "room"}
        assert (room.name, room.id, room.is_protected) == ("room", ID, False)
        assert (room.is_open, room.error, room.silent) == (True, None, ("b",))
        assert repr(room) == "<AsyncChannel room, open>"


async def test_a_gateway_gets_what_checks_a_password_and_nothing_that_proves_it(
    scripted: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with scripted() as gateway, meeting(gateway) as (connection, peer, _):
        script = answer(peer, "open", id=ID, name="room", protected=True, silent=[])
        question, room = await asyncio.gather(script, connection.open_channel("room", HORSE))
        stored, server = SECRET.verifier
        assert question.to_dict() == {"name": "room", "stored": stored, "server": server}
        assert room.is_protected
    assert HORSE not in caplog.text
    assert SECRET.client.hex() not in repr(SECRET) + repr(vars(room))
    assert repr(SECRET) == "Secret(…)"


async def test_whoever_joins_proves_to_know_the_password(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, _):
        script = check(peer, SECRET.verifier)
        room = await while_(script, connection.join_channel("room", HORSE))
        assert (room.id, room.is_protected) == (ID, True)


async def test_a_gateway_that_does_not_know_the_password_is_not_trusted(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, _):

        async def script() -> None:
            await check(peer, SECRET.verifier, signed_by=b"x" * 32)
            assert (await answer(peer, "leave"))["id"] == ID

        with pytest.raises(ProtocolError, match="scripted let us into the channel 'room' without"):
            await while_(script(), connection.join_channel("room", HORSE))
        # It is as if it had not been tried.
        await while_(let_in(peer), connection.join_channel("room"))


async def test_a_channel_without_a_password_is_not_the_one_that_was_meant(
    scripted: Scripted,
) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, _):

        async def script() -> None:
            await let_in(peer)
            assert (await answer(peer, "leave"))["id"] == ID

        with pytest.raises(WrongPassword, match="has no password: join it without one"):
            await while_(script(), connection.join_channel("room", HORSE))


async def test_a_password_that_is_needed_and_not_given_is_not_tried(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, _):
        with pytest.raises(WrongPassword, match="no channel 'room' without a password"):
            await while_(answer(peer, "join", challenge=CHALLENGE), connection.join_channel("room"))


@pytest.mark.parametrize("verb", ["open", "join"])
async def test_an_empty_password_is_none_and_says_so(scripted: Scripted, verb: str) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, _, __):
        with pytest.raises(BadOption, match="the password is empty"):
            await getattr(connection, f"{verb}_channel")("room", "")
        with pytest.raises(BadSubject):
            await getattr(connection, f"{verb}_channel")("room.>", None)


async def test_what_a_gateway_refuses_is_raised_and_may_be_tried_again(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, _):
        for error in (ChannelExists, ChannelContested, NotAllowed):
            with pytest.raises(error):
                await while_(refuse(peer, "open", error), connection.open_channel("room"))


async def test_whoever_gives_up_joining_is_not_in_it_after_all(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, _):
        joining = asyncio.ensure_future(connection.join_channel("room"))
        frame, _question = await asked(peer, "join")
        joining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await joining
        again = asyncio.ensure_future(connection.join_channel("room"))
        peer.send(
            Kind.MESSAGE,
            frame.reply,
            Message(id=OTHER_ID, name="room", protected=False),
            flags=Flag.FROM_GATEWAY,
        )
        assert (await answer(peer, "leave"))["id"] == OTHER_ID
        await let_in(peer)
        assert (await again).id == ID


async def test_whoever_gives_up_what_is_refused_has_nothing_to_leave(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, _):
        opening = asyncio.ensure_future(connection.open_channel("room"))
        frame, _question = await asked(peer, "open")
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        peer.refuse((ChannelExists.number, "no"), frame, Flag.REQUEST)
        await while_(let_in(peer), connection.join_channel("room"))


async def test_one_connection_is_in_a_channel_once(scripted: Scripted) -> None:
    async with member(scripted) as (room, peer, _, __):
        with pytest.raises(UsageError, match="in the channel 'room' already"):
            await room._connection.join_channel("room")
        await while_(answer(peer, "leave"), room.leave())
        await while_(let_in(peer), room._connection.join_channel("room"))


async def test_what_is_said_goes_to_the_channel_by_its_id(scripted: Scripted) -> None:
    async with member(scripted) as (room, peer, _, __):
        await room.publish("moves.white", "e4", not_back=True)
        said = await peer.frame(Kind.MESSAGE)
        assert said.subject.decode() == f"_CHANNEL.{ID}.moves.white"
        assert said.flags & Flag.NOT_BACK
        with pytest.raises(BadSubject):
            await room.publish("", "nothing")


async def test_a_request_goes_to_whoever_serves_it_in_the_channel(scripted: Scripted) -> None:
    async with member(scripted) as (room, peer, _, __):

        async def script() -> None:
            for _ in range(2):
                question = await peer.frame(Kind.MESSAGE)
                assert question.subject.decode() == f"_CHANNEL.{ID}.clock"
                peer.send(Kind.MESSAGE, question.reply, b"now", flags=Flag.BARE)

        async def work() -> None:
            assert (await room.send_request("clock", b"?")).payload == b"now"
            assert [each.payload for each in await room.gather("clock", b"?", count=1)] == [b"now"]

        await while_(script(), work())


async def test_what_is_heard_has_the_subject_that_it_was_said_to(scripted: Scripted) -> None:
    async with member(scripted) as (room, peer, _, __):
        moves = room.subscribe(["moves.>", "end"])
        asked_for = await peer.confirm()
        await moves.ready()
        assert asked_for.subject.decode() == f"_CHANNEL.{ID}.moves.>"
        assert Message.from_body(asked_for.body).to_dict() == {"patterns": [f"_CHANNEL.{ID}.end"]}
        assert moves.patterns == ["moves.>", "end"]
        say(peer, "moves.white", b"e4")
        message = await moves.next(10)
        assert (room.subject_of(message), message.payload) == ("moves.white", b"e4")
        with pytest.raises(UsageError, match="was not sent in a channel"):
            room.subject_of(Message())


async def test_a_channel_has_no_history(scripted: Scripted) -> None:
    async with member(scripted) as (room, _, __, ___):
        with pytest.raises(BadOption, match="channels have no history"):
            room.subscribe(since="5m")


async def test_whoever_leaves_takes_back_what_was_heard(scripted: Scripted) -> None:
    async with member(scripted) as (room, peer, _, __):
        async with room:
            moves = room.subscribe()
            await peer.confirm()
            leaving = asyncio.ensure_future(room.leave())
            assert (await peer.frame(Kind.UNSUBSCRIBE)).subject.decode() == f"_CHANNEL.{ID}.>"
            assert (await answer(peer, "leave"))["id"] == ID
            await leaving
        assert (room.is_open, room.error) == (False, None)
        assert [each async for each in moves] == []
        with pytest.raises(NotOpen, match="the channel 'room' was left"):
            await room.publish("a", b"")
        with pytest.raises(NotOpen, match="the channel 'room' was left"):
            room.subscribe()


async def test_whoever_closes_a_channel_is_not_told_of_it_as_a_loss(scripted: Scripted) -> None:
    async with member(scripted) as (room, peer, _, __):
        moves = room.subscribe()
        await peer.confirm()

        async def script() -> None:
            frame, question = await asked(peer, "close")
            assert question["id"] == ID
            take_back(peer, ChannelClosed, ">")
            peer.send(Kind.MESSAGE, frame.reply, Message(), flags=Flag.FROM_GATEWAY)

        await while_(script(), room.close())
        assert (room.is_open, room.error) == (False, None)
        assert [each async for each in moves] == []


async def test_a_channel_that_may_not_be_closed_is_still_open(scripted: Scripted) -> None:
    async with member(scripted) as (room, peer, _, __):
        with pytest.raises(NotAllowed):
            await while_(refuse(peer, "close", NotAllowed), room.close())
        assert room.is_open
        await while_(answer(peer, "close"), room._connection.close_channel("room"))


async def test_a_loss_while_a_channel_is_joined_is_raised(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, _):
        joining = asyncio.ensure_future(connection.join_channel("room"))
        await asked(peer, "join")
        peer.close()
        with pytest.raises(ConnectionLost):
            await joining
        back = await gateway.peer()
        await while_(let_in(back), connection.join_channel("room"))


async def test_channels_are_listed_and_shown(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, _):
        entry = {"name": "room", "id": ID, "protected": False, "members": 2, "gateways": 1}
        script = answer(peer, "list", channels=[Message.from_dict(entry)], more=7)
        question, found = await asyncio.gather(script, connection.channels(limit=1))
        assert question["limit"] == 1
        assert [(each.name, each.members, each.is_protected) for each in found] == [
            ("room", 2, False)
        ]
        assert found.more == 7
        place = Message(gateway="a", members=2, message_rate=1.5)
        facts = {"name": "room", "id": ID, "protected": False, "owner": "me.1", "gateway": "a"}
        facts |= {"epoch": 3, "is_confirmed": True, "members": 2, "message_rate": 1.5}
        script = answer(peer, "show", **facts, places=[place])
        question, shown = await asyncio.gather(script, connection.channel_facts("room"))
        assert question["name"] == "room"
        assert (shown.owner, shown.epoch, shown.places) == ("me.1", 3, (("a", 2, 1.5),))
        with pytest.raises(BadOption, match="limit is 0"):
            await connection.channels(limit=0)


@pytest.mark.parametrize(
    ("verb", "call"),
    [("list", "channels"), ("show", "channel_facts"), ("join", "join_channel")],
)
async def test_an_answer_that_cannot_be_understood_says_so(
    scripted: Scripted, verb: str, call: str
) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, _):
        arguments = () if call == "channels" else ("room",)
        with pytest.raises(weft.errors.BadMessage):
            await while_(answer(peer, verb, odd=1), getattr(connection, call)(*arguments))
