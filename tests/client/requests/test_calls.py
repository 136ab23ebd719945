"""Calls and their answers, shown with a scripted gateway that gives or withholds them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Unpack

import pytest

from weft.client.asyncio.connection import AsyncConnection, connect
from weft.client.options import ConnectOptions
from weft.client.publish.encode import message_frame
from weft.client.requests.calls import Identity
from weft.errors import (
    BadField,
    ConnectionLost,
    ControlFlood,
    NotKnown,
    NotOpen,
    Overloaded,
    Reserved,
    ResponderGone,
    TimedOut,
)
from weft.wire import frames
from weft.wire.frames import Flag, Frame, Kind
from weft.wire.message.message import Message

Scripted = Callable[[], AbstractAsyncContextManager[Any]]


@asynccontextmanager
async def meeting(
    gateway: Any, **options: Unpack[ConnectOptions]
) -> AsyncIterator[tuple[AsyncConnection, Any]]:
    """A connection and the scripted gateway's end of it."""
    options["backoff_first_s"] = 0.001
    connecting = asyncio.ensure_future(connect(gateway.address, **options))
    peer = await gateway.peer()
    connection = await connecting
    try:
        yield connection, peer
    finally:
        await gateway.part(connection)


async def lose(connection: AsyncConnection, peer: Any) -> None:
    line = connection._engine.line
    assert line is not None
    peer.close()
    await line.ended


def acknowledge(peer: Any, asked: Frame, sequence: int) -> None:
    frame = bytearray(frames.encode(Kind.OK, asked.subject, b"", asked.reply, Flag.ANSWER))
    frame[8:12] = (7).to_bytes(4, "little")
    frame[12:16] = (8).to_bytes(4, "little")
    frame[16:24] = sequence.to_bytes(8, "little")
    frame[24:32] = (9).to_bytes(8, "little")
    peer.writer.write(frame)


@pytest.mark.req("HUB-3")
async def test_an_acknowledgement_says_what_became_of_the_message(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        publishing = asyncio.create_task(connection.publish("a", b"", acknowledge=True))
        asked = await peer.frame(Kind.MESSAGE)
        assert asked.flags & Flag.ANSWER
        acknowledge(peer, asked, 5)
        assert await publishing == Identity(7, 8, 5, 9)


async def test_acknowledgements_of_one_subject_go_out_in_order(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        publishing = [
            asyncio.create_task(connection.publish("a", b"", acknowledge=True)) for _ in range(3)
        ]
        asked = [await peer.frame(Kind.MESSAGE) for _ in range(3)]
        for sequence in (1, 2, 3):
            acknowledge(peer, asked[0], sequence)
        assert [(await each).sequence for each in publishing] == [1, 2, 3]


async def test_a_refused_message_raises_what_the_gateway_said(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        publishing = asyncio.create_task(connection.publish("_X", b"", acknowledge=True))
        peer.refuse((4002, "not yours"), await peer.frame(Kind.MESSAGE))
        with pytest.raises(Reserved, match="not yours"):
            await publishing


async def test_an_acknowledgement_is_not_waited_for_for_ever(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway, timeout_s=0.05) as (connection, peer):
        with pytest.raises(TimedOut, match=r"no acknowledgement of 'a' after 0\.05 s"):
            await connection.publish("a", b"", acknowledge=True)
        # The answer that comes late is not taken for the next one's.
        late = await peer.frame(Kind.MESSAGE)
        publishing = asyncio.create_task(connection.publish("a", b"", acknowledge=True))
        await peer.frame(Kind.MESSAGE)
        acknowledge(peer, late, 1)
        acknowledge(peer, late, 2)
        assert (await publishing).sequence == 2


async def test_a_message_that_could_not_be_sent_takes_nobodys_acknowledgement(
    scripted: Scripted,
) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        with pytest.raises(BadField):
            await connection.publish("a", bytes(2 << 20), acknowledge=True)
        publishing = asyncio.create_task(connection.publish("a", b"", acknowledge=True))
        acknowledge(peer, await peer.frame(Kind.MESSAGE), 1)
        assert (await publishing).sequence == 1


async def test_what_never_fits_the_buffer_is_refused_at_once(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway, buffer_bytes=10_000) as (connection, _):
        with pytest.raises(BadField, match="never fits a publish buffer of 10000"):
            await connection.publish("a", bytes(10_000))
        with pytest.raises(BadField, match="never fits a publish buffer of 10000"):
            await connection.publish("a", bytes(10_000), acknowledge=True)
        for refused in (
            connection.send_request("a", bytes(10_000)),
            connection.gather("a", bytes(10_000)),
        ):
            with pytest.raises(BadField, match="never fits a publish buffer of 10000"):
                await refused


async def test_who_is_overtaken_by_another_thread_waits_for_room_again(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scripted() as gateway, meeting(gateway, buffer_bytes=1000) as (connection, peer):
        outgoing = connection._engine.outgoing

        class Overtaken:
            """As if another thread took the room just when there was some."""

            put = outgoing.put
            check = outgoing.check

            def has_room(self, size: int) -> bool:
                answer = outgoing.has_room(size)
                outgoing.put(message_frame("b", bytes(800)))
                monkeypatch.setattr(connection._engine, "outgoing", outgoing)
                return answer

        monkeypatch.setattr(connection._engine, "outgoing", Overtaken())
        asking = asyncio.create_task(connection.gather("a", bytes(500), count=1))
        assert (await peer.frame(Kind.MESSAGE)).subject == b"b"
        asked = await peer.frame(Kind.MESSAGE)
        peer.send(Kind.MESSAGE, asked.reply, b"")
        await asking


async def test_a_lost_connection_fails_an_acknowledgement(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        publishing = asyncio.create_task(connection.publish("a", b"", acknowledge=True))
        await peer.frame(Kind.MESSAGE)
        peer.close()
        with pytest.raises(ConnectionLost):
            await publishing


async def subjects(peer: Any, count: int) -> list[str]:
    return [(await peer.frame(Kind.MESSAGE)).subject.decode() for _ in range(count)]


async def test_the_order_of_messages_is_that_of_the_calls(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        first = connection.publish("first", b"", acknowledge=True)
        await connection.publish("second", b"")
        publishing = asyncio.create_task(first)
        asked = await peer.frame(Kind.MESSAGE)
        assert asked.subject == b"first"
        assert await subjects(peer, 1) == ["second"]
        acknowledge(peer, asked, 1)
        assert (await publishing).sequence == 1


async def test_the_order_holds_for_what_is_published_while_disconnected(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        await lose(connection, peer)
        await connection.publish("a", b"")
        first = asyncio.create_task(connection.publish("b", b"", acknowledge=True))
        await give_way()
        await connection.publish("c", b"")
        second = connection.publish("d", b"", acknowledge=True)
        await connection.publish("e", b"")
        following = await gateway.peer()
        asked = [await following.frame(Kind.MESSAGE) for _ in range(5)]
        assert [each.subject for each in asked] == [b"a", b"b", b"c", b"d", b"e"]
        acknowledge(following, asked[1], 1)
        acknowledge(following, asked[3], 2)
        assert [(await first).sequence, (await second).sequence] == [1, 2]


async def test_what_never_left_the_buffer_is_acknowledged_by_the_next_connection(
    scripted: Scripted,
) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        count = await fill(connection, peer)
        assert count > 1
        publishing = asyncio.create_task(connection.publish("b", b"", acknowledge=True))
        await give_way()
        await lose(connection, peer)
        following = await gateway.peer()
        asked = await following.frame(Kind.MESSAGE)
        while asked.subject != b"b":
            asked = await following.frame(Kind.MESSAGE)
        acknowledge(following, asked, 7)
        assert (await publishing).sequence == 7


async def test_what_was_given_up_while_disconnected_is_not_sent(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway, timeout_s=0.05) as (connection, peer):
        # Nobody is welcomed until the scripted gateway is asked for its next peer.
        await lose(connection, peer)
        with pytest.raises(TimedOut):
            await connection.publish("a", b"", acknowledge=True)
        await connection.publish("b", b"")
        following = await gateway.peer()
        assert await subjects(following, 1) == ["b"]
        assert connection._engine.session.awaited == 0


async def test_closing_fails_what_waits_to_be_sent_and_acknowledged(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        await lose(connection, peer)
        publishing = asyncio.create_task(connection.publish("a", b"", acknowledge=True))
        await give_way()
        closing = asyncio.create_task(connection.close())
        with pytest.raises(NotOpen, match="closed before this was sent"):
            await publishing
        await closing


async def test_no_more_acknowledgements_are_awaited_than_may_be(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway, waiting_max=2) as (connection, peer):
        await lose(connection, peer)
        waiting = [
            asyncio.create_task(connection.publish("a", b"", acknowledge=True)) for _ in range(2)
        ]
        with pytest.raises(Overloaded, match="limit of 2 pending replies"):
            await connection.publish("a", b"", acknowledge=True)
        following = await gateway.peer()
        for sequence in (1, 2):
            acknowledge(following, await following.frame(Kind.MESSAGE), sequence)
        await asyncio.gather(*waiting)


async def test_messages_that_wait_for_room_keep_their_order(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway, buffer_bytes=1 << 20) as (connection, peer):
        count = await fill(connection, peer)
        first = connection.publish("first", b"x" * 100_000)
        second = connection.publish("second", b"x" * 100_000, acknowledge=True)
        third = connection.publish("third", b"")
        publishing = [asyncio.ensure_future(each) for each in (third, first)]
        await drained(peer, count)
        assert await subjects(peer, 1) == ["first"]
        asked = await peer.frame(Kind.MESSAGE)
        assert asked.subject == b"second"
        acknowledge(peer, asked, 1)
        assert (await second).sequence == 1
        assert await subjects(peer, 1) == ["third"]
        await asyncio.gather(*publishing)


async def test_what_nobody_waits_for_any_more_makes_nothing_wait(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway, buffer_bytes=1 << 20) as (connection, peer):
        await fill(connection, peer)
        given_up = asyncio.create_task(connection.publish("given_up", b"x" * 100_000))
        with pytest.warns(RuntimeWarning, match="never awaited"):
            connection.publish("forgotten", b"x" * 100_000)  # type: ignore[unused-coroutine]  # the point
        assert connection._engine.outgoing.queued == 1
        await give_way()
        given_up.cancel()
        await asyncio.wait({given_up})
        assert connection._engine.outgoing.queued == 0


@pytest.mark.req("MM-3")
async def test_a_request_gets_its_answer(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        asking = asyncio.create_task(connection.send_request("q", b"?"))
        asked = await peer.frame(Kind.MESSAGE)
        assert asked.flags == Flag.REQUEST | Flag.BARE
        peer.send(Kind.MESSAGE, asked.reply, b"!", flags=Flag.BARE)
        assert (await asking).payload == b"!"


@pytest.mark.parametrize(("number", "error"), [(4001, NotKnown), (3003, ResponderGone)])
async def test_a_request_fails_as_the_gateway_says(
    scripted: Scripted, number: int, error: type[Exception]
) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        asking = asyncio.create_task(connection.send_request("q", b"", resend=True))
        peer.refuse((number, "no"), await peer.frame(Kind.MESSAGE), Flag.REQUEST)
        with pytest.raises(error):
            await asking


@pytest.mark.req("MM-3")
async def test_a_request_times_out_and_its_answer_is_late(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        with pytest.raises(TimedOut, match=r"no answer from 'q' after 0\.05 s"):
            await connection.send_request("q", b"", 0.05)
        asked = await peer.frame(Kind.MESSAGE)
        peer.send(Kind.MESSAGE, asked.reply, b"")
        flushing = asyncio.create_task(connection.flush())
        peer.send(Kind.PONG, body=(await peer.frame(Kind.PING)).body)
        await flushing
        assert connection.statistics.late == 1


async def test_a_longer_time_than_usual_may_be_asked_for(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway, timeout_s=0.02) as (connection, peer):
        asking = asyncio.create_task(connection.send_request("q", b"", 20))
        with pytest.raises(TimedOut):
            await connection.flush()
        asked = await peer.frame(Kind.MESSAGE)
        peer.send(Kind.MESSAGE, asked.reply, b"")
        await asking


async def test_a_lost_connection_fails_a_request(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        asking = asyncio.create_task(connection.send_request("q", b""))
        await peer.frame(Kind.MESSAGE)
        peer.close()
        with pytest.raises(ConnectionLost, match="was ended by the gateway"):
            await asking


async def test_a_request_that_may_be_repeated_is_sent_again(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        asking = asyncio.create_task(connection.send_request("q", b"?", resend=True))
        await peer.frame(Kind.MESSAGE)
        peer.close()
        following = await gateway.peer()
        asked = await following.frame(Kind.MESSAGE)
        following.send(Kind.MESSAGE, asked.reply, b"!", flags=Flag.BARE)
        assert (await asking).payload == b"!"


async def test_a_request_may_be_repeated_whatever_ended_the_connection(
    scripted: Scripted,
) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        asking = asyncio.create_task(connection.send_request("q", b"?", resend=True))
        flushing = asyncio.create_task(connection.flush())
        await peer.frame(Kind.PING)
        peer.send(Kind.ERROR, body=Message(number=2008, name="ControlFlood", text="", kind=0))
        peer.close()
        with pytest.raises(ConnectionLost) as raised:
            await flushing
        assert isinstance(raised.value.__cause__, ControlFlood)
        following = await gateway.peer()
        asked = await following.frame(Kind.MESSAGE)
        following.send(Kind.MESSAGE, asked.reply, b"!", flags=Flag.BARE)
        assert (await asking).payload == b"!"


async def test_a_repeated_request_still_has_one_time_limit(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        asking = asyncio.create_task(connection.send_request("q", b"?", 0.3, resend=True))
        await peer.frame(Kind.MESSAGE)
        peer.close()
        await (await gateway.peer()).frame(Kind.MESSAGE)
        with pytest.raises(TimedOut):
            await asking


async def test_a_call_that_finds_no_connection_waits_for_one(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        await lose(connection, peer)
        asking = asyncio.create_task(connection.send_request("q", b"?"))
        following = await gateway.peer()
        asked = await following.frame(Kind.MESSAGE)
        following.send(Kind.MESSAGE, asked.reply, b"")
        await asking


async def test_a_call_is_not_misled_by_a_connection_that_is_lost_at_once(
    scripted: Scripted,
) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        await lose(connection, peer)
        asking = asyncio.create_task(connection.send_request("q", b"?"))
        # The welcome and the goodbye are read together: the caller has no turn between them.
        brief = await gateway.stranger()
        brief.welcome()
        brief.send(Kind.GOODBYE, body=Message(reason="draining", text=""))
        await brief.frame(Kind.GOODBYE)
        brief.close()
        following = await gateway.peer()
        asked = await following.frame(Kind.MESSAGE)
        following.send(Kind.MESSAGE, asked.reply, b"")
        await asking


async def test_no_more_answers_are_awaited_than_may_be(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway, waiting_max=1) as (connection, peer):
        asking = asyncio.create_task(connection.send_request("q", b"", 20))
        await peer.frame(Kind.MESSAGE)
        with pytest.raises(Overloaded):
            await connection.send_request("q", b"")
        asking.cancel()
        await asyncio.wait({asking})
        assert connection._engine.session.awaited == 0


async def gathered(peer: Any, answers: int) -> None:
    asked = await peer.frame(Kind.MESSAGE)
    assert not asked.flags & Flag.REQUEST
    for number in range(answers):
        peer.send(Kind.MESSAGE, asked.reply, b"%d" % number, flags=Flag.BARE)


async def test_a_gathering_ends_at_its_count(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        gathering = asyncio.create_task(connection.gather("q", b"", count=3, deadline_s=20))
        await gathered(peer, 5)
        assert [answer.payload for answer in await gathering] == [b"0", b"1", b"2"]


async def test_a_gathering_ends_when_it_is_quiet(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        gathering = asyncio.create_task(
            connection.gather("q", b"", count=9, quiet_s=0.05, deadline_s=20)
        )
        await gathered(peer, 2)
        assert len(await gathering) == 2


async def test_a_gathering_ends_at_its_deadline(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, _):
        assert await connection.gather("q", b"", quiet_s=0.01, deadline_s=0.05) == []


async def test_a_lost_connection_fails_a_gathering(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        gathering = asyncio.create_task(connection.gather("q", b"", deadline_s=20))
        await gathered(peer, 2)
        peer.close()
        with pytest.raises(ConnectionLost):
            await gathering


async def test_a_gathering_that_finds_no_connection_says_so(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        await lose(connection, peer)
        with pytest.raises(TimedOut, match="no connection to send a request to 'q'"):
            await connection.gather("q", b"", deadline_s=0.05)


async def test_answers_are_bounded_in_bytes(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway, queue_bytes=1000) as (connection, peer):
        gathering = asyncio.create_task(connection.gather("q", b"", deadline_s=20))
        await gathered(peer, 1000)
        with pytest.raises(Overloaded, match="the answers exceed queue_bytes"):
            await gathering


async def test_a_flush_returns_when_the_gateway_has_answered(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer):
        await connection.publish("a", b"")
        flushing = asyncio.create_task(connection.flush())
        await peer.frame(Kind.MESSAGE)
        ping = await peer.frame(Kind.PING)
        assert not flushing.done()
        peer.send(Kind.PONG, body=ping.body)
        await flushing


async def fill(connection: AsyncConnection, peer: Any) -> int:
    """Publish until nothing more fits; how many messages did."""
    assert peer  # which reads nothing
    count = 0
    while connection._engine.outgoing.has_room(100_100):
        await connection.publish("a", b"x" * 100_000)
        await give_way()
        count += 1
    return count


async def turn() -> None:
    """One turn of the loop."""


async def give_way() -> None:
    """Let every other task have its turn."""
    await asyncio.wait([asyncio.ensure_future(turn())])


async def drained(peer: Any, count: int) -> None:
    for _ in range(count):
        await peer.frame(Kind.MESSAGE)


async def test_a_full_buffer_makes_a_publisher_wait(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway, buffer_bytes=1 << 20) as (connection, peer):
        count = await fill(connection, peer)
        publishing = asyncio.create_task(connection.publish("a", b"x" * 100_000))
        asking = asyncio.create_task(connection.send_request("q", b"x" * 100_000))
        await drained(peer, count + 1)
        await publishing
        asked = await peer.frame(Kind.MESSAGE)
        peer.send(Kind.MESSAGE, asked.reply, b"")
        await asking
        assert connection._engine.outgoing.held_bytes < 1 << 20


async def test_a_publisher_does_not_wait_for_ever(scripted: Scripted) -> None:
    async with (
        scripted() as gateway,
        meeting(gateway, buffer_bytes=1 << 20, timeout_s=0.05) as (connection, peer),
    ):
        await fill(connection, peer)
        with pytest.raises(Overloaded, match=r"after 0\.05 s"):
            await connection.publish("a", b"x" * 100_000)
        with pytest.raises(TimedOut):
            await connection.send_request("a", b"x" * 100_000)


@pytest.mark.parametrize("when_full", ["raise", "drop"])
async def test_a_full_buffer_raises_for_what_awaits_an_answer(
    scripted: Scripted, when_full: Any
) -> None:
    async with (
        scripted() as gateway,
        meeting(gateway, buffer_bytes=1 << 20, when_full=when_full) as (connection, peer),
    ):
        await fill(connection, peer)
        with pytest.raises(Overloaded):
            await connection.publish("a", b"x" * 100_000, acknowledge=True)
        with pytest.raises(Overloaded):
            await connection.send_request("a", b"x" * 100_000)


async def test_a_full_buffer_raises_if_that_was_chosen(scripted: Scripted) -> None:
    async with (
        scripted() as gateway,
        meeting(gateway, buffer_bytes=1 << 20, when_full="raise") as (connection, peer),
    ):
        await fill(connection, peer)
        with pytest.raises(Overloaded):
            await connection.publish("a", b"x" * 100_000)


async def test_a_full_buffer_drops_if_that_was_chosen(scripted: Scripted) -> None:
    async with (
        scripted() as gateway,
        meeting(gateway, buffer_bytes=1 << 20, when_full="drop") as (connection, peer),
    ):
        await fill(connection, peer)
        for _ in range(3):
            await connection.publish("a", b"x" * 100_000)
        assert connection.statistics.dropped == 3
