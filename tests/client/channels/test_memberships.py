"""How channels outlive a line, and how they end, shown with a scripted gateway."""

import asyncio

import pytest
from tests.client.channel_script import (
    CHALLENGE,
    HORSE,
    ID,
    OTHER_ID,
    SECRET,
    answer,
    asked,
    let_in,
    member,
    refuse,
    say,
    take_back,
    while_,
)
from tests.client.connection.test_engine import Scripted, meeting

import weft
from weft.client.channels.memberships import ChannelMembership
from weft.client.channels.requests import TRIES
from weft.client.status import What
from weft.errors import (
    ChannelClosed,
    ChannelLost,
    ConnectionLost,
    NotAllowed,
    NotAMember,
    NotOpen,
    WrongPassword,
)
from weft.wire.frames import Flag, Kind
from weft.wire.message.message import Message


@pytest.mark.parametrize("error", [ChannelLost, ChannelClosed, NotAMember])
async def test_a_channel_that_is_no_more_ends_with_the_reason(
    scripted: Scripted, error: type[weft.WeftError]
) -> None:
    async with member(scripted) as (room, peer, statuses, _):
        everything, moves = room.subscribe(), room.subscribe("moves.*")
        for _ in range(2):
            await peer.confirm()
        await moves.ready()
        # One for each subscription, and the last for the channel.
        for pattern in (">", "moves.*", ">"):
            take_back(peer, error, pattern)
        for subscription in (everything, moves):
            with pytest.raises(error):
                await subscription.next(10)
        assert isinstance(room.error, error)
        assert not room.is_open
        with pytest.raises(error):
            await room.publish("a", b"")
        assert (await statuses.wait_for(What.REFUSED)).detail == "the channel room ended"


async def test_a_right_that_is_lost_ends_the_subscription_and_not_the_channel(
    scripted: Scripted,
) -> None:
    async with member(scripted) as (room, peer, _, __):
        everything = room.subscribe()
        await peer.confirm()
        await everything.ready()
        take_back(peer, NotAllowed, ">")
        with pytest.raises(NotAllowed):
            await everything.next(10)
        assert room.is_open


async def test_after_a_loss_the_channel_is_joined_and_then_heard_by_its_new_id(
    scripted: Scripted,
) -> None:
    async with member(scripted) as (room, peer, _, gateway):
        moves = room.subscribe("moves.*")
        await peer.confirm()
        await moves.ready()
        peer.close()
        back = await gateway.peer()
        frame, _ = await asked(back, "join")
        # What is said meanwhile waits until it can be heard.
        saying = asyncio.ensure_future(room.publish("moves.white", b"e4"))
        told = Message(id=OTHER_ID, name="room", protected=False)
        back.send(Kind.MESSAGE, frame.reply, told, flags=Flag.FROM_GATEWAY)
        assert (await back.confirm()).subject.decode() == f"_CHANNEL.{OTHER_ID}.moves.*"
        said = await back.frame(Kind.MESSAGE)
        assert said.subject.decode() == f"_CHANNEL.{OTHER_ID}.moves.white"
        await saying
        say(back, "moves.black", b"e5", OTHER_ID)
        assert (await moves.next(10)).payload == b"e5"
        assert room.id == OTHER_ID


async def test_nothing_of_a_channel_is_asked_for_before_it_was_joined_again(
    scripted: Scripted,
) -> None:
    async with member(scripted) as (room, peer, statuses, gateway):
        moves = room.subscribe("moves.*")
        await peer.confirm()
        room._connection.subscribe("plain")
        await peer.confirm()
        peer.close()
        await statuses.wait_for(What.DISCONNECTED)
        ended, begun = room.subscribe("ended"), room.subscribe("begun")
        await ended.close()
        back = await gateway.peer()
        assert (await back.confirm()).subject == b"plain"
        await let_in(back)
        # Whatever is asked for comes after the join: in this order.
        for name in ("moves.*", "begun"):
            assert (await back.confirm()).subject.decode() == f"_CHANNEL.{ID}.{name}"
        await begun.ready()
        assert moves.is_open


async def test_whoever_opened_a_channel_that_is_gone_opens_it_again(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, _):
        script = answer(peer, "open", id=ID, name="room", protected=True, silent=[])
        room = await while_(script, connection.open_channel("room", HORSE))
        peer.close()
        back = await gateway.peer()
        await answer(back, "join", challenge=CHALLENGE)
        await refuse(back, "prove", WrongPassword)
        question = await answer(back, "open", id=OTHER_ID, name="room", protected=True, silent=[])
        assert question["stored"] == SECRET.verifier.stored
        await room.publish("a", b"")
        assert (await back.frame(Kind.MESSAGE)).subject.decode() == f"_CHANNEL.{OTHER_ID}.a"


async def test_a_channel_that_is_not_known_yet_is_tried_a_few_times_and_not_more(
    scripted: Scripted,
) -> None:
    async with member(scripted) as (room, peer, statuses, gateway):
        room._channels._chance = lambda: 0.0
        moves = room.subscribe()
        await peer.confirm()
        peer.close()
        back = await gateway.peer()
        for _ in range(TRIES):
            await answer(back, "join", challenge=CHALLENGE)
        with pytest.raises(WrongPassword):
            await moves.next(10)
        assert isinstance(room.error, WrongPassword)
        lost = await statuses.wait_for(What.REFUSED)
        assert lost.detail == "the channel room ended"
        with pytest.raises(WrongPassword):
            await room.publish("a", b"")


async def test_a_channel_that_is_left_while_it_is_joined_again_is_left(scripted: Scripted) -> None:
    async with member(scripted) as (room, peer, _, gateway):
        peer.close()
        back = await gateway.peer()
        frame, _ = await asked(back, "join")
        await room.leave()
        back.send(
            Kind.MESSAGE,
            frame.reply,
            Message(id=OTHER_ID, name="room", protected=False),
            flags=Flag.FROM_GATEWAY,
        )
        assert (await answer(back, "leave"))["id"] == OTHER_ID
        assert not room.is_open


async def test_what_was_buffered_for_a_channel_is_dropped_with_its_line(scripted: Scripted) -> None:
    async with member(scripted) as (room, _, __, gateway):
        connection = room._connection
        # In one turn: nothing of it leaves before the line is found to be gone.
        said = room.publish("a", b"")
        plain = connection.publish("plain", b"")
        connection._engine.fail(ConnectionLost("cut"))
        await said
        await plain
        back = await gateway.peer()
        assert (await back.frame(Kind.MESSAGE)).subject == b"plain"
        assert connection.statistics.dropped == 1


async def test_a_closed_connection_has_left_its_channels(scripted: Scripted) -> None:
    async with member(scripted) as (room, _, __, gateway):
        await gateway.part(room._connection)
        assert (room.is_open, room.error) == (False, None)
        await room.leave()
        with pytest.raises(NotOpen):
            await room.publish("a", b"")


async def test_a_fault_of_our_own_does_not_look_like_silence(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with member(scripted) as (room, _, statuses, __):

        async def broken(_: ChannelMembership) -> None:
            raise ZeroDivisionError

        # No gateway can make it fail.
        monkeypatch.setattr(room._channels, "_retry", broken)
        with pytest.raises(ZeroDivisionError):
            await room._channels._join_again(room._membership)
        assert isinstance(room.error, weft.errors.InternalError)
        await statuses.wait_for(What.REFUSED)
