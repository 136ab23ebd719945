import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.transports.loops import (
    Client,
    is_open,
    on_both_loops,
    small_buffers,
    tcp_pair,
    unix_pair,
    until,
)

from weft.broker.limits import Limits
from weft.broker.service import Service
from weft.transports.http.stream import ROOM_BYTES, Stream
from weft.transports.loop.poller import Poll
from weft.transports.loop.turn import Turn


class Noted:
    """Whoever speaks on a stream, and notes what it is told."""

    def __init__(self) -> None:
        self.heard = b""
        self.told: list[str] = []

    def received(self, data: bytes) -> None:
        self.heard += data

    def ended(self) -> None:
        self.told.append("ended")

    def drained(self) -> None:
        self.told.append("drained")

    def lost(self) -> None:
        self.told.append("lost")

    def late(self) -> None:
        self.told.append("late")

    def is_ours(self, data: bytes) -> bool:
        return not data.startswith(b"theirs")


@asynccontextmanager
async def streaming(
    *, is_small: bool = False, is_tcp: bool = False
) -> AsyncIterator[tuple[Stream, Noted, Client]]:
    loop = asyncio.get_running_loop()
    turn = Turn(Service("weather", "london-1", 7, Limits()), loop)
    poll = Poll(turn, loop)
    client, theirs = tcp_pair() if is_tcp else unix_pair()
    if is_small:
        small_buffers(client, theirs)
    talk = Noted()
    stream = Stream(poll, theirs.detach(), talk)
    try:
        yield stream, talk, client
    finally:
        stream.close()
        client.close()
        poll.close()


async def read(client: Client, size: int) -> bytes:
    heard = b""
    while len(heard) < size:
        data = await asyncio.get_running_loop().sock_recv(client.sock, 1 << 16)
        if not data:
            break
        heard += data
    return heard


@on_both_loops
async def test_bytes_go_both_ways() -> None:
    async with streaming() as (stream, talk, client):
        await client.say(b"hello")
        await until(lambda: talk.heard == b"hello")
        stream.write(b"hi")
        assert await read(client, 2) == b"hi"
        assert talk.told == []


@on_both_loops
async def test_what_the_socket_does_not_take_is_sent_in_order_as_it_has_room() -> None:
    async with streaming(is_small=True) as (stream, talk, client):
        said = b"".join(b"%07d," % number for number in range(100_000))
        for at in range(0, len(said), 50_000):
            stream.write(said[at : at + 50_000])
        assert not stream.has_room
        assert stream.unsent > ROOM_BYTES
        assert await read(client, len(said)) == said
        await until(lambda: talk.told == ["drained"])
        assert stream.has_room


@on_both_loops
async def test_one_that_takes_nothing_is_not_read_from_until_it_does() -> None:
    async with streaming(is_small=True) as (stream, talk, client):
        stream.write(b"x" * (ROOM_BYTES + 100_000))
        await client.say(b"unheard")
        await asyncio.sleep(0.02)
        assert talk.heard == b""
        await read(client, ROOM_BYTES + 100_000)
        await until(lambda: talk.heard == b"unheard")


@on_both_loops
async def test_a_pause_reads_nothing_until_it_is_over() -> None:
    async with streaming() as (stream, talk, client):
        stream.pause()
        await client.say(b"later")
        await asyncio.sleep(0.02)
        assert talk.heard == b""
        stream.resume()
        await until(lambda: talk.heard == b"later")


@on_both_loops
async def test_an_end_sends_what_is_left_and_waits_for_the_other_side() -> None:
    async with streaming(is_small=True) as (stream, talk, client):
        stream.write(b"x" * 300_000)
        stream.end()
        stream.write(b"ignored")
        assert not stream.has_room
        assert len(await read(client, 1 << 30)) == 300_000
        await client.say(b"ignored, too")
        assert stream.is_open
        client.close()
        await until(lambda: not stream.is_open)
        assert (talk.heard, talk.told) == (b"", ["lost"])


@on_both_loops
async def test_one_that_ends_is_still_sent_to() -> None:
    async with streaming() as (stream, talk, client):
        await client.say(b"last words")
        client.sock.shutdown(socket.SHUT_WR)
        await until(lambda: talk.told == ["ended"])
        assert talk.heard == b"last words"
        stream.write(b"answer")
        assert await read(client, 6) == b"answer"


@on_both_loops
async def test_one_that_resets_is_lost_once() -> None:
    async with streaming(is_tcp=True) as (stream, talk, client):
        client.reset()
        await until(lambda: not stream.is_open)
        stream.write(b"to nobody")
        stream.end()
        stream.close()
        assert talk.told == ["lost"]


async def test_nothing_that_spoke_on_a_closed_stream_is_kept_by_it() -> None:
    async with streaming() as (stream, talk, _):
        stream.close()
        assert stream.talk is not talk
        silent = stream.talk
        for told in (silent.ended, silent.drained, silent.lost, silent.late):
            told()
        silent.received(b"x")
        assert silent.is_ours(b"x")
        assert talk.told == ["lost"]


@on_both_loops
async def test_what_is_for_another_can_be_given_away_unread_once_all_is_sent() -> None:
    async with streaming(is_small=True) as (stream, talk, client):
        stream.write(b"x" * 200_000)
        stream.look_first()
        released: list[int] = []

        def give(data: bytes) -> bool:
            assert data.startswith(b"theirs")
            assert stream.unsent == 0
            released.append(stream.release())
            return False

        talk.is_ours = give  # type: ignore[method-assign]  # the test decides
        await client.say(b"theirs entirely")
        await asyncio.sleep(0.01)
        assert released == []
        assert len(await read(client, 200_000)) == 200_000
        await until(lambda: len(released) == 1)
        assert not stream.is_open
        assert is_open(released[0])
        assert os.read(released[0], 100) == b"theirs entirely"
        os.close(released[0])
        assert (talk.heard, talk.told) == (b"", ["drained"]) or talk.told == []


async def test_a_stream_is_stalled_when_its_socket_takes_nothing_and_not_before() -> None:
    async with streaming(is_small=True) as (stream, _, client):
        assert not stream.is_stalled(100, 1)
        stream.write(bytes(4 * ROOM_BYTES))
        assert not stream.is_stalled(5, 5)
        assert not stream.is_stalled(5, 9)
        assert stream.is_stalled(6, 9)
        unsent = stream.unsent
        client.sock.recv(1 << 16)
        await until(lambda: stream.unsent < unsent)
        assert not stream.is_stalled(6, 9)
        stream.close()
        assert not stream.is_stalled(100, 100)
