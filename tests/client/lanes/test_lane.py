"""One end of a lane over a real socket: what it tells the other end, and when."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest
import uvloop

from weft.client.connection.transport import SocketTransport
from weft.client.lanes import lane as lane_module
from weft.client.lanes.handshake import Invitation, Other
from weft.client.lanes.lane import Lane
from weft.client.lanes.receive_stream import Run
from weft.client.lanes.splitter import Splitter
from weft.client.lanes.transport import LaneTransport
from weft.wire.address import Address
from weft.wire.frames import BODY_LIMIT_BYTES, Decoder, Flag, Kind, encode
from weft.wire.lane_messages import word_in
from weft.wire.message.message import Message

T = TypeVar("T")

SUBJECT = b"hot"
ORIGIN = 3
INVITATION = Invitation(SUBJECT, b"ticket", bytes(32), Other(7, "writer"), False, 1e12)


class Owner:
    """Has one lane, and hears what comes by it a turn later, as subscriptions do."""

    own_inbox = b"_INBOX.1."

    def __init__(self, wire: LaneTransport) -> None:
        self.lane = Lane(INVITATION, ORIGIN, wire, self)
        self.splitter = Splitter()
        self.ends = self
        self.heard: list[bytes] = []
        self.closes_at = b"none"
        self.refused = 0
        self._loop = asyncio.get_running_loop()

    def deal(self, lane: Lane, runs: list[Run]) -> None:
        assert lane is self.lane
        for run in runs:
            if run[0][-1:] == self.closes_at:
                lane.wire.close()
            self._loop.call_soon(self.heard.extend, run)

    def refuse(self, count: int) -> None:
        self.refused += count

    def may_answer(self, lane: Lane, reply: bytes) -> bool:
        raise AssertionError(lane, reply)

    def greeted(self, lane: Lane, word: str, facts: Message) -> None:
        raise AssertionError(lane, word, facts)

    def not_served(self, lane: Lane, subject: bytes) -> None:
        raise AssertionError(lane, subject)

    def took_more(self, lane: Lane) -> None:
        raise AssertionError(lane)

    def part(self, lane: Lane) -> None:
        raise AssertionError(lane)

    def broke(self, lane: Lane, reason: str) -> None:
        pass


class Nobody:
    """Whoever has a wire before its lane does."""

    def took(self, run: list[bytes]) -> None:
        raise AssertionError(run)

    def read_all(self) -> None:
        raise AssertionError

    def overstepped(self) -> None:
        raise AssertionError

    def broke(self, reason: str) -> None:
        raise AssertionError(reason)


def message(number: int) -> bytes:
    frame = bytearray(encode(Kind.MESSAGE, SUBJECT, b"%d" % number, flags=Flag.BARE))
    frame[8:16] = ORIGIN.to_bytes(4, "little") + INVITATION.other.number.to_bytes(4, "little")
    return bytes(frame)


def words_in(data: bytes) -> list[tuple[str, Message]]:
    """The words that the other end was sent."""
    decoder = Decoder(BODY_LIMIT_BYTES)
    decoder.feed(data)
    words = []
    while run := decoder.next_run():
        words += [word_in(frame) for frame in run]
    return words


def last_ack(data: bytes) -> int:
    """What was confirmed last in what the other end was sent; 0 if nothing was."""
    counts = [facts.get_int64("count") for word, facts in words_in(data) if word == "ack"]
    return max(counts, default=0)


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop])
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner


def test_what_was_just_read_is_heard_before_what_came_earlier_is_confirmed(
    runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_module, "ACK_S", 0.0)
    monkeypatch.setattr(lane_module, "ACK_LATEST_S", 1e6)

    async def hear_two() -> None:
        async with lane_to_here() as (owner, there):
            there.send(message(1))
            await until(lambda: owner.heard)
            there.send(message(2))
            said = await until(lambda: read_now(there))
            assert [frame[-1:] for frame in owner.heard] == [b"1", b"2"]
            assert last_ack(said) == owner.lane.incoming.taken

    runner.run(hear_two())


def test_what_nothing_follows_is_confirmed_after_a_while(
    runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_module, "ACK_S", 1e6)

    async def hear_one() -> None:
        async with lane_to_here() as (owner, there):
            there.send(message(1))
            said = await until(lambda: read_now(there))
            assert [frame[-1:] for frame in owner.heard] == [b"1"]
            assert last_ack(said) == owner.lane.incoming.taken

    runner.run(hear_one())


@pytest.mark.req("HUB-21")
@pytest.mark.parametrize("may_ask", [True, False])
def test_only_whoever_may_ask_is_heard_asking(runner: asyncio.Runner, may_ask: bool) -> None:
    inbox = b"_INBOX.7."
    asked = bytearray(encode(Kind.MESSAGE, SUBJECT, b"?", inbox + b"1", Flag.REQUEST | Flag.BARE))
    asked[8:16] = message(1)[8:16]

    async def ask() -> None:
        async with lane_to_here() as (owner, there):
            owner.lane.serve(INVITATION._replace(inbox=inbox, may_ask=may_ask))
            there.send(bytes(asked))
            await until(lambda: owner.heard or owner.lane.wire.line is None)
            assert [frame[-1:] for frame in owner.heard] == ([b"?"] if may_ask else [])
            assert owner.lane.is_open == may_ask
            assert owner.refused == (not may_ask)

    runner.run(ask())


def test_what_a_closed_lane_still_has_of_a_read_is_not_taken(runner: asyncio.Runner) -> None:
    async def close_first() -> None:
        async with lane_to_here() as (owner, there):
            owner.closes_at = b"1"
            taken = owner.lane.incoming.taken
            # Two runs: they differ in their flags.
            other = bytearray(message(2))
            other[5] |= Flag.NOT_BACK
            there.send(message(1) + bytes(other))
            await until(lambda: owner.heard)
            await until(lambda: owner.lane.wire.line is None)
            assert [frame[-1:] for frame in owner.heard] == [b"1"]
            assert owner.lane.incoming.taken == taken + 1

    runner.run(close_first())


@pytest.mark.req("HUB-22")
def test_a_withdrawn_subject_is_heard_again_only_after_a_new_ticket(
    runner: asyncio.Runner,
) -> None:
    async def withdraw_and_show() -> None:
        async with lane_to_here() as (owner, there):
            lane = owner.lane
            there.send(message(1))
            await until(lambda: lane.incoming.taken == 2)
            lane.withdraw(SUBJECT)
            assert [word for word, _ in words_in(read_now(there))] == ["unserved"]
            there.send(message(2))
            await until(lambda: lane.incoming.taken == 3)
            lane.show(SUBJECT)
            lane.serve(INVITATION)
            there.send(message(3))
            await until(lambda: lane.incoming.taken == 4)
            await until(lambda: len(owner.heard) == 2)
            assert [frame[-1:] for frame in owner.heard] == [b"1", b"3"]
            assert owner.refused == 0

    runner.run(withdraw_and_show())


@pytest.mark.req("HUB-22")
def test_a_tail_brings_nothing_that_was_sent_before_the_subject_was_shown_again(
    runner: asyncio.Runner,
) -> None:
    async def end_by_tail() -> None:
        async with lane_to_here() as (owner, there):
            lane = owner.lane
            # What follows has to wait for the gateway, and is lost with the lane.
            lane.incoming.switched_by_lane(2)
            lane.incoming.switched_by_lane(3)
            there.send(message(1))
            await until(lambda: lane.incoming.arrived == 4)
            lane.withdraw(SUBJECT)
            lane.show(SUBJECT)
            lane.incoming.tail(lane.incoming.taken)
            lane.incoming.switched_by_gateway(3)
            lane.tail(message(1))
            lane.tail(message(2))
            lane.incoming.over()
            assert lane.incoming.released() == [[[message(2)]]]
            assert owner.refused == 0

    runner.run(end_by_tail())


@asynccontextmanager
async def lane_to_here() -> AsyncIterator[tuple[Owner, socket.socket]]:
    """A lane by which everything comes from here on, and the other end's socket."""
    here, there = socket.socketpair()
    here.setblocking(False)
    there.setblocking(False)
    wire = LaneTransport(Nobody())
    owner = Owner(wire)
    lane = wire.speaker = owner.lane
    lane.serves.add(SUBJECT)
    wire.begin(BODY_LIMIT_BYTES, None)
    line = wire.line = SocketTransport(Address("lane", 0, False), wire)
    await asyncio.get_running_loop().create_connection(lambda: line, sock=here)
    lane.incoming.switched_by_gateway(1)
    lane.incoming.switched_by_lane(1)
    with there:
        yield owner, there
        wire.close()
        await line.ended


async def until(look: Callable[[], T]) -> T:
    async with asyncio.timeout(10):
        while not (found := look()):
            await asyncio.sleep(0)
    return found


def read_now(sock: socket.socket) -> bytes:
    try:
        return sock.recv(65_536)
    except BlockingIOError:
        return b""
