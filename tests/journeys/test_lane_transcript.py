"""The conversation that the whole idea began with, frame by frame, by clients made by hand.

1, 2 and 3 announce themselves and are given addresses of their own; 1 asks 3 through the gateway 0,
more and more often, until 0 tells it where 3 is; then 1 and 3 talk to each other.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple

import pytest
from tests.journeys.raw import LIMIT_S, Raw, dialled, fields, greeting, message, subscribe
from tests.journeys.running import running

from weft.wire.frames import Flag, Frame, Kind, encode
from weft.wire.lane_messages import lane_frame
from weft.wire.lane_tickets import Proofs, lane_number
from weft.wire.message.message import Message

SETTINGS = """
name = "0"

[limits]
greeting_s = 60.0

[lanes]
messages_s = 100.0
hold_s = 0.1
"""


@asynccontextmanager
async def announced(address: str, name: str) -> AsyncIterator[Raw]:
    """hi I am me.1."""
    async with dialled(address) as raw:
        await raw.send(greeting("default", name, version=1, lanes=1))
        welcome = await raw.next(Kind.WELCOME)
        assert welcome.reply.decode() == name
        raw.inbox = fields(welcome)["inbox"].encode()
        yield raw


async def address_of(raw: Raw, port: int) -> str:
    """Give me a direct channel: ok, you get …"""
    body = Message(port=port).encode()
    reply = raw.inbox + b".address"
    await raw.send(encode(Kind.MESSAGE, b"_WEFT.ask.lane.address", body, reply, Flag.REQUEST))
    answer = await raw.next()
    return str(fields(answer)["address"])


async def word(raw: Raw, expected: str) -> tuple[Frame, dict[str, Any]]:
    """The next word about lanes; messages in between are let go."""
    while True:
        frame = await raw.frame()
        assert frame is not None
        if frame.kind == Kind.LANE:
            said = fields(frame)
            assert said["word"] == expected, said
            return frame, said


async def lane_word(lane: Raw, expected: str) -> dict[str, Any]:
    said = fields(await lane.next(Kind.LANE))
    assert said["word"] == expected, said
    return said


class Door:
    """Where 3 listens."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setblocking(False)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen()
        self.port: int = self._socket.getsockname()[1]

    async def meet(self) -> Raw:
        """Whoever comes next."""
        async with asyncio.timeout(LIMIT_S):
            met, _ = await asyncio.get_running_loop().sock_accept(self._socket)
        return Raw(met)

    def close(self) -> None:
        self._socket.close()


@pytest.mark.req("HUB-1", "HUB-2", "HUB-3", "HUB-7", "HUB-8", "HUB-10", "HUB-11", "HUB-14")
async def test_the_conversation(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(tmp_path_factory.mktemp("0"), SETTINGS) as gateway:
        async with AsyncExitStack() as stack:
            one = await stack.enter_async_context(announced(gateway.address, "me.1"))
            two = await stack.enter_async_context(announced(gateway.address, "me.2"))
            three = await stack.enter_async_context(announced(gateway.address, "me.3"))
            door = Door()
            stack.callback(door.close)

            # Each is given an address of its own, and nobody that of another.
            given = [await address_of(one, 1234), await address_of(two, 1235)]
            given.append(await address_of(three, door.port))
            assert given == ["127.0.0.1:1234", "127.0.0.1:1235", f"127.0.0.1:{door.port}"]
            body = Message(port=1234).encode()
            asked = encode(
                Kind.MESSAGE, b"_WEFT.ask.lane.address", body, two.inbox + b".a", Flag.REQUEST
            )
            [refusal] = await two.say(asked)
            assert refusal.kind == Kind.ERROR

            # hi I like foo4: OK got it.
            for raw, names in ((one, ["foo", "foo2"]), (two, ["foo2", "foo3"]), (three, ["foo4"])):
                for name in names:
                    assert [frame.kind for frame in await raw.say(subscribe(name))] == [Kind.OK]

            # Through the hub 3 sees a stand-in for the reply.
            masked = message("foo4", b"xxxx", one.inbox + b".rep", Flag.MASKED)
            assert await one.say(masked) == []
            heard = await three.next()
            assert heard.reply != one.inbox + b".rep"
            await three.send(message(heard.reply.decode(), b"a reply"))
            answer = await one.next()
            assert (answer.subject, answer.body) == (one.inbox + b".rep", b"a reply")

            told = await be_offered(one, three, door.port)
            await talk_directly(one, three, door, told)


class Told(NamedTuple):
    """What the gateway told both ends."""

    ticket: bytes
    key: bytes
    receiver: int


async def be_offered(one: Raw, three: Raw, port: int) -> Told:
    """Ask more and more often, until the gateway invites 3 and tells 1 where it is."""

    async def talk() -> None:
        while True:
            await one.send(message("foo4", b"xxxx"))
            await asyncio.sleep(0.002)

    talking = asyncio.create_task(talk())
    try:
        invitation, invited = await word(three, "invite")
        assert invitation.subject == b"foo4"
        assert invited["name"] == "me.1"
        ready = {"ticket": invited["ticket"], "port": port, "unix": ""}
        await three.send(lane_frame("ready", b"foo4", **ready))
        _, offer = await word(one, "offer")
    finally:
        talking.cancel()
    [lane] = offer["lanes"]
    # Here is the whole list of those who like foo4, and their direct contacts.
    assert (lane["name"], lane["address"]) == ("me.3", f"127.0.0.1:{port}")
    assert (lane["ticket"], lane["key"]) == (invited["ticket"], invited["key"])
    return Told(lane["ticket"], lane["key"], lane["receiver"])


async def talk_directly(one: Raw, three: Raw, door: Door, told: Told) -> None:
    """1 → 3: this is for foo4, I think that is you. 3 → 1: yes, I know; here is a reply."""
    there = await Raw.dial(f"127.0.0.1:{door.port}")
    here = await door.meet()
    mine, theirs = os.urandom(32), os.urandom(32)
    proofs = Proofs(told.key, told.ticket, mine, theirs)
    await there.send(lane_frame("hello", b"foo4", ticket=told.ticket, nonce=mine))
    assert (await lane_word(here, "hello"))["ticket"] == told.ticket
    await here.send(lane_frame("serve", b"foo4", nonce=theirs, proof=proofs.by_receiver()))
    assert (await lane_word(there, "serve"))["proof"] == proofs.by_receiver()
    await there.send(lane_frame("prove", b"foo4", proof=proofs.by_sender()))
    assert (await lane_word(here, "prove"))["proof"] == proofs.by_sender()
    await here.send(lane_frame("ack", count=0))
    await lane_word(there, "ack")

    await one.send(lane_frame("direct", b"foo4"))
    lane = lane_number(told.ticket)
    await one.send(lane_frame("switch", peers=[told.receiver], lanes=[lane], numbers=[1]))
    await there.send(lane_frame("switch", number=1))
    await there.send(message("foo4", b"yyyy", one.inbox + b".rep"))
    _, switched = await word(three, "switch")
    assert (await lane_word(here, "switch"))["number"] == switched["number"] == 1
    assert switched["lane"] == lane
    direct = await here.next()
    # It names its subject, and the reply as it is.
    assert (direct.subject, direct.body) == (b"foo4", b"yyyy")
    assert direct.reply == one.inbox + b".rep"
    await here.send(message(direct.reply.decode(), b"a reply"))
    answer = await there.next()
    assert (answer.subject, answer.body) == (one.inbox + b".rep", b"a reply")
    here.close()
    there.close()
