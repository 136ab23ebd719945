"""What the engine makes of what a gateway says, shown with a scripted one."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Unpack

import pytest

from weft.client.asyncio.connection import AsyncConnection, connect
from weft.client.connection.session import unsubscribe_frame
from weft.client.connection.transport import SocketTransport
from weft.client.options import ConnectOptions
from weft.client.publish.encode import message_frame
from weft.client.publish.send_buffer import CONTROL_RESERVE_BYTES, SendBuffer
from weft.client.status import Gap, Status, What
from weft.errors import (
    BadField,
    BadFrame,
    ConnectionLost,
    Draining,
    NotOpen,
    Overloaded,
    Reserved,
    Silent,
    SlowReader,
    TooMany,
)
from weft.wire import frames
from weft.wire.address import addresses_from
from weft.wire.frames import Flag, Kind
from weft.wire.message.message import Message

Scripted = Callable[[], AbstractAsyncContextManager[Any]]


class Statuses:
    """What a connection said of itself, to be waited for."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Status] = asyncio.Queue()
        self.put = self._queue.put_nowait

    async def wait_for(self, what: What) -> Status:
        while True:
            status = await self._queue.get()
            if status.what is what:
                return status


@asynccontextmanager
async def meeting(
    gateway: Any, **options: Unpack[ConnectOptions]
) -> AsyncIterator[tuple[AsyncConnection, Any, Statuses]]:
    """A connection and the scripted gateway's end of it."""
    statuses = Statuses()
    options |= {"on_status": statuses.put, "backoff_first_s": 0.001}
    connecting = asyncio.ensure_future(connect(gateway.address, **options))
    peer = await gateway.peer()
    connection = await connecting
    try:
        yield connection, peer, statuses
    finally:
        await gateway.part(connection)


async def test_patterns_are_asked_for_in_one_frame_and_taken_back_in_one(
    scripted: Scripted,
) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, _):
        subscription = connection.subscribe(["a", "b.*"], group="g", policy="latest")
        asked = await peer.confirm()
        assert (asked.subject, asked.reply, asked.flags) == (b"a", b"g", Flag.ANSWER)
        assert Message.from_body(asked.body).to_dict() == {"policy": "latest", "patterns": ["b.*"]}
        await subscription.ready()
        await subscription.close()
        taken_back = await peer.frame(Kind.UNSUBSCRIBE)
        assert (taken_back.subject, taken_back.reply) == (b"a", b"g")
        assert Message.from_body(taken_back.body).to_dict() == {"patterns": ["b.*"]}


async def test_the_gateway_is_told_when_the_last_of_two_leaves(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, _):
        first = connection.subscribe("a")
        second = connection.subscribe(["a", "b"])
        await first.close()
        await second.close()
        taken_back = await peer.frame(Kind.UNSUBSCRIBE)
        assert taken_back.subject == b"a"
        assert Message.from_body(taken_back.body).to_dict() == {"patterns": ["b"]}


async def test_a_refused_subscription_says_so_everywhere(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, statuses):
        subscription = connection.subscribe("_X.a")
        peer.refuse((4002, "not yours"), await peer.frame(Kind.SUBSCRIBE))
        with pytest.raises(Reserved):
            await subscription.ready()
        with pytest.raises(Reserved):
            await subscription.next(10)
        status = await statuses.wait_for(What.REFUSED)
        assert isinstance(status.error, Reserved)
        assert not subscription.is_open
        # It is gone here too: the same may be asked again, otherwise.
        connection.subscribe("_X.a", policy="latest")


async def test_a_refusal_that_nobody_awaits_is_reported(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, statuses):
        await connection.publish("a.b", b"")
        peer.refuse((4005, "too much"), await peer.frame(Kind.MESSAGE), Flag.NONE)
        status = await statuses.wait_for(What.REFUSED)
        assert isinstance(status.error, TooMany)
        assert "a.b" in status.detail
        assert connection.is_connected


async def test_a_gap_is_told_to_the_owner_and_to_the_subscription(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, statuses):
        gaps: list[Gap] = []
        subscription = connection.subscribe("a", on_gap=gaps.append)
        await peer.confirm()
        peer.gap("slow", 5)
        peer.send(Kind.MESSAGE, b"a", b"")
        await subscription.next(10)
        assert gaps == [Gap("slow", 5)]
        assert (await statuses.wait_for(What.GAP)).gap == Gap("slow", 5)


async def test_a_ping_is_answered(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (_, peer, _):
        peer.send(Kind.PING, body=b"12")
        assert (await peer.frame(Kind.PONG)).body == b"12"


async def test_a_silent_gateway_is_pinged_and_then_given_up(scripted: Scripted) -> None:
    async with scripted() as gateway:
        statuses = Statuses()
        connecting = asyncio.ensure_future(connect(gateway.address, on_status=statuses.put))
        peer = await gateway.peer(ping_s=0.05)
        connection = await connecting
        await peer.frame(Kind.PING)
        status = await statuses.wait_for(What.DISCONNECTED)
        assert isinstance(status.error, Silent)
        await gateway.peer()
        await gateway.part(connection)


async def test_a_broken_stream_ends_the_connection_and_a_new_one_begins(
    scripted: Scripted,
) -> None:
    async with scripted() as gateway, meeting(gateway) as (_, peer, statuses):
        peer.writer.write(b"\x01\x00\x00\x00")
        status = await statuses.wait_for(What.DISCONNECTED)
        assert isinstance(status.error, BadFrame)
        await gateway.peer()
        await statuses.wait_for(What.CONNECTED)


async def test_what_comes_over_another_line_is_not_heard(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, _):
        subscription = connection.subscribe("a")
        await peer.confirm()
        await subscription.ready()
        engine = connection._engine
        stranger = SocketTransport(addresses_from(gateway.address)[0], engine)
        engine.received(stranger, memoryview(message_frame("a", b"of a line given up")))
        engine.writable(stranger)
        peer.send(Kind.MESSAGE, b"a", b"of ours", flags=Flag.BARE)
        assert (await subscription.next(10)).payload == b"of ours"


async def test_a_message_to_no_subject_ends_the_connection(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (_, peer, statuses):
        peer.send(Kind.MESSAGE, b"a..b")
        assert isinstance((await statuses.wait_for(What.DISCONNECTED)).error, BadFrame)


async def test_why_the_gateway_ended_it_is_what_it_said_last(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, statuses):
        asking = asyncio.create_task(connection.send_request("q", b""))
        await peer.frame(Kind.MESSAGE)
        told = Message(number=3005, name="SlowReader", text="8 MiB behind", kind=0)
        peer.send(Kind.ERROR, body=told)
        peer.close()
        assert isinstance((await statuses.wait_for(What.DISCONNECTED)).error, SlowReader)
        with pytest.raises(SlowReader, match="8 MiB behind"):
            await asking


async def test_a_goodbye_is_answered_after_what_is_buffered(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, statuses):
        asking = asyncio.create_task(connection.send_request("q", b""))
        asked = await peer.frame(Kind.MESSAGE)
        peer.send(Kind.GOODBYE, body=Message(reason="draining", text=""))
        await peer.frame(Kind.GOODBYE)
        # What is published now is for the next gateway; what is owed still comes.
        await connection.publish("later", b"")
        peer.send(Kind.MESSAGE, asked.reply, b"")
        peer.close()
        assert (await asking).subject == asked.reply.decode()
        assert isinstance((await statuses.wait_for(What.DISCONNECTED)).error, Draining)
        following = await gateway.peer()
        assert (await following.frame(Kind.MESSAGE)).subject == b"later"


async def test_after_a_loss_everything_is_asked_for_again_before_what_is_buffered(
    scripted: Scripted,
) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, statuses):
        connection.subscribe("a")
        connection.subscribe(["b", "c"])
        await peer.confirm()
        peer.close()
        await statuses.wait_for(What.DISCONNECTED)
        await connection.publish("a", b"said meanwhile")
        following = await gateway.peer()
        data = await following.reader.readuntil(b"said meanwhile")
        decoder = frames.Decoder()
        decoder.feed(data)
        kinds = [
            (frame[4], frames.parse(frame).subject) for frame in iter(decoder.next_frame, None)
        ]
        assert kinds == [
            (Kind.SUBSCRIBE, b"a"),
            (Kind.SUBSCRIBE, b"b"),
            (Kind.MESSAGE, b"a"),
        ]
        assert (await statuses.wait_for(What.GAP)).gap == Gap("reconnected")


async def test_after_a_loss_a_subscription_hears_what_comes_once_it_is_confirmed_again(
    scripted: Scripted,
) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, statuses):
        told: asyncio.Queue[object] = asyncio.Queue()
        connection.subscribe(
            "a", lambda message: told.put_nowait(message.payload), on_gap=told.put_nowait
        )
        await peer.confirm()
        peer.close()
        await statuses.wait_for(What.DISCONNECTED)
        following = await gateway.peer()
        following.writer.write(message_frame("a", b"with holes, as a route comes back"))
        await following.confirm()
        following.writer.write(message_frame("a", b"again"))
        assert [await told.get(), await told.get()] == [Gap("reconnected"), b"again"]


async def test_what_another_gateway_sends_again_after_a_failover_is_heard_once(
    scripted: Scripted,
) -> None:
    """A gateway that was cut off from the origin is sent what the client had from another."""

    def of_origin(sequence: int) -> bytes:
        frame = bytearray(message_frame("a", b"%d" % sequence))
        frame[8:12] = (77).to_bytes(4, "little")
        frame[16:24] = sequence.to_bytes(8, "little")
        return bytes(frame)

    async with scripted() as gateway, meeting(gateway) as (connection, peer, statuses):
        told: asyncio.Queue[object] = asyncio.Queue()
        connection.subscribe(
            "a", lambda message: told.put_nowait(message.payload), on_gap=told.put_nowait
        )
        await peer.confirm()
        peer.writer.write(of_origin(5) + of_origin(6))
        assert [await told.get(), await told.get()] == [b"5", b"6"]
        peer.close()
        await statuses.wait_for(What.DISCONNECTED)
        following = await gateway.peer()
        await following.confirm()
        following.writer.write(b"".join(map(of_origin, (4, 5, 6, 7))))
        assert [await told.get(), await told.get()] == [Gap("reconnected"), b"7"]
        assert connection.statistics.repeated == 3


@pytest.mark.parametrize(("group", "flags"), [("workers", 0), ("", Flag.REQUEST)])
async def test_what_nobody_else_gets_is_heard_before_the_confirmation(
    scripted: Scripted, group: str, flags: int
) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, _):
        subscription = connection.subscribe("a", group=group)
        await peer.frame(Kind.SUBSCRIBE)
        peer.writer.write(message_frame("a", b"for one", flags=flags))
        assert (await subscription.next(10)).payload == b"for one"


async def test_a_subscription_that_was_never_confirmed_has_missed_nothing(
    scripted: Scripted,
) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, peer, statuses):
        told: asyncio.Queue[object] = asyncio.Queue()
        connection.subscribe(
            "a", lambda message: told.put_nowait(message.payload), on_gap=told.put_nowait
        )
        await peer.frame(Kind.SUBSCRIBE)
        peer.close()
        await statuses.wait_for(What.DISCONNECTED)
        following = await gateway.peer()
        await following.confirm()
        following.writer.write(message_frame("a", b"the first"))
        assert await told.get() == b"the first"


async def test_a_message_larger_than_the_gateway_takes_is_refused_here(
    scripted: Scripted,
) -> None:
    async with scripted() as gateway:
        connecting = asyncio.ensure_future(connect(gateway.address))
        await gateway.peer(body_limit=50)
        connection = await connecting
        with pytest.raises(BadField, match="limit of 50"):
            await connection.publish("a", b"x" * 51)
        await gateway.part(connection)


async def test_there_are_no_more_subscriptions_than_answers_may_be_awaited(
    scripted: Scripted,
) -> None:
    async with scripted() as gateway, meeting(gateway, waiting_max=2) as (connection, _, _):
        connection.subscribe("a")
        connection.subscribe("b")
        with pytest.raises(Overloaded, match="2 subscriptions"):
            connection.subscribe("c")


async def test_a_subscription_that_cannot_be_asked_for_is_not_there(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway, waiting_max=2) as (connection, peer, _):
        connection.subscribe("a")
        asking = asyncio.create_task(connection.send_request("q", b""))
        await peer.frame(Kind.MESSAGE)
        with pytest.raises(Overloaded, match="limit of 2 pending replies"):
            connection.subscribe("b")
        assert len(connection._engine.subscriptions.interests) == 1
        peer.close()
        with pytest.raises(ConnectionLost):
            await asking


async def test_pings_that_cannot_be_answered_end_the_connection(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway, buffer_bytes=1) as (_, peer, statuses):
        ping = frames.encode(Kind.PING)

        async def flood() -> None:
            while True:
                peer.writer.write(ping * 1000)
                await peer.writer.drain()

        flooding = asyncio.create_task(flood())
        status = await statuses.wait_for(What.DISCONNECTED)
        assert isinstance(status.error, Overloaded)
        flooding.cancel()
        await asyncio.wait({flooding})


def fill_reserve(outgoing: SendBuffer) -> None:
    """Fill a buffer so that not even the frame that takes back a pattern fits."""
    frame = unsubscribe_frame([b"a"], b"")
    room = (1 << 20) + CONTROL_RESERVE_BYTES - outgoing.held_bytes
    for _ in range(room // len(frame)):
        outgoing.put_control(frame)


async def test_a_pattern_that_cannot_be_taken_back_ends_the_connection(scripted: Scripted) -> None:
    async with (
        scripted() as gateway,
        meeting(gateway, buffer_bytes=1 << 20) as (connection, peer, statuses),
    ):
        subscription = connection.subscribe("a")
        await peer.confirm()
        fill_reserve(connection._engine.outgoing)
        await subscription.close()
        assert isinstance((await statuses.wait_for(What.DISCONNECTED)).error, Overloaded)


async def test_a_closed_connection_takes_nothing(scripted: Scripted) -> None:
    async with scripted() as gateway, meeting(gateway) as (connection, _, statuses):
        subscription = connection.subscribe("a")
        await gateway.part(connection)
        with pytest.raises(NotOpen):
            await connection.publish("a", b"")
        with pytest.raises(NotOpen):
            await connection.publish("a", b"", acknowledge=True)
        for refused in (
            connection.send_request("a", b""),
            connection.flush(),
            subscription.ready(),
            subscription.next(10),
        ):
            with pytest.raises(NotOpen):
                await refused
        with pytest.raises(NotOpen):
            connection.subscribe("a")
        assert (await statuses.wait_for(What.CLOSED)).detail == "closed"
