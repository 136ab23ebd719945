"""Somebody who speaks of lanes by hand: to a gateway, and to other clients."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.journeys.raw import LIMIT_S, Raw, dialled, fields, greeting

import weft
from weft.gateway.config.settings import Settings
from weft.gateway.gateway import Gateway
from weft.lanes.settings import LaneSettings
from weft.wire.frames import Flag, Frame, Kind, encode
from weft.wire.lane_messages import lane_frame
from weft.wire.lane_tickets import NONCE_BYTES, Proofs, lane_number
from weft.wire.message.message import Message

HOT = "hot"
NONCE = bytes(NONCE_BYTES)
# Nothing is hot by itself: lanes are where they are asked for.
LANES = LaneSettings(messages_s=1e6, bytes_s=1e9)


class Scene:
    """A gateway, and a client that hears HOT."""

    def __init__(self, gateway: Gateway, reader: weft.AsyncConnection) -> None:
        self.gateway = gateway
        self.reader = reader
        self.heard: asyncio.Queue[bytes] = asyncio.Queue()

    async def refused(self, name: str) -> int:
        """How often the gateway refused something by this name."""
        status = (await self.gateway.status())["services"]["default"]["status"]
        return int(status["refused"].get(name, 0))

    @property
    def turned_away(self) -> int:
        """How often the reader refused strangers, or what others may not do by lanes."""
        return self.reader.statistics.lane_refusals

    async def until_turned_away(self, count: int) -> None:
        """Wait until so many strangers were sent away."""
        async with asyncio.timeout(LIMIT_S):
            while self.turned_away < count:
                await asyncio.sleep(0.005)

    async def next(self) -> bytes:
        """What the reader hears next."""
        async with asyncio.timeout(LIMIT_S):
            return await self.heard.get()

    async def check(self) -> None:
        """See that the reader has its connection, and that others still reach it."""
        async with weft.connect(self.gateway.address) as other:
            await other.publish(HOT, b"still there?")
        assert await self.next() == b"still there?"
        assert self.reader.statistics.connects == 1


@asynccontextmanager
async def besieged(lanes: LaneSettings = LANES) -> AsyncIterator[Scene]:
    """A gateway and a reader."""
    settings = Settings(listen="127.0.0.1:0", name="besieged", lanes=lanes)
    async with (
        Gateway(settings=settings, workers="inline") as gateway,
        weft.connect(gateway.address, name="reader") as reader,
    ):
        scene = Scene(gateway, reader)
        subscription = reader.subscribe(HOT, lambda heard: scene.heard.put_nowait(heard.payload))
        await subscription.ready()
        yield scene


class Knowing(Raw):
    """A connection by hand that knows lanes."""

    number = 0
    origin = 0
    # Of the first receiver that it was offered.
    lane = 0

    async def greet_knowing(self, name: str) -> None:
        """Be welcomed."""
        await self.send(greeting("default", name, lanes=1))
        welcome = await self.next(Kind.WELCOME)
        self.inbox = fields(welcome)["inbox"].encode()
        self.origin = welcome.origin
        self.number = welcome.publisher

    async def word(self, word: str) -> dict[str, Any]:
        """The next word of this kind; what comes before it is passed over."""
        while (frame := await self.frame()) is not None:
            if frame.kind == Kind.LANE and fields(frame)["word"] == word:
                return fields(frame)
        raise AssertionError(f"the connection ended before {word}")

    async def offered(self, subject: str = HOT) -> list[dict[str, Any]]:
        """Ask for lanes; what is offered."""
        await self.ask(subject)
        lanes: list[dict[str, Any]] = (await self.word("offer"))["lanes"]
        self.lane = lane_number(lanes[0]["ticket"])
        return lanes

    async def switch(self, receiver: int, number: int) -> None:
        """Tell the gateway of a change of way."""
        lanes = [self.lane]
        await self.send(lane_frame("switch", peers=[receiver], lanes=lanes, numbers=[number]))

    async def ask(self, subject: str = HOT) -> None:
        """Ask for lanes."""
        body = Message(subject=subject).encode()
        asked = b"_WEFT.ask.lane.direct"
        await self.send(encode(Kind.MESSAGE, asked, body, self.inbox + b".1", Flag.REQUEST))

    def by_lane(self, body: bytes, subject: str = HOT, number: int | None = None) -> bytes:
        """A message as it goes by a lane, in the name of this connection or of another."""
        frame = bytearray(encode(Kind.MESSAGE, subject.encode(), body, flags=Flag.BARE))
        frame[8:12] = self.origin.to_bytes(4, "little")
        frame[12:16] = (self.number if number is None else number).to_bytes(4, "little")
        return bytes(frame)


@asynccontextmanager
async def knowing(address: str, name: str) -> AsyncIterator[Knowing]:
    """A connection by hand that was welcomed."""
    raw = await Knowing.dial(address)
    try:
        await raw.greet_knowing(name)
        yield raw
    finally:
        raw.close()


async def hello(lane: Raw, offer: dict[str, Any]) -> Frame | None:
    """Show a ticket; what comes of it."""
    await lane.send(lane_frame("hello", HOT.encode(), ticket=offer["ticket"], nonce=NONCE))
    return await lane.frame()


async def prove(lane: Raw, served: Frame, offer: dict[str, Any]) -> bytes:
    """Prove to know the key of a ticket; what was sent for it."""
    proofs = Proofs(offer["key"], offer["ticket"], NONCE, fields(served)["nonce"])
    said = lane_frame("prove", HOT.encode(), proof=proofs.by_sender())
    await lane.send(said)
    return said


@asynccontextmanager
async def proven(publisher: Knowing) -> AsyncIterator[Raw]:
    """A lane to the reader, and a route that goes by it."""
    [offer] = await publisher.offered()
    async with dialled(offer["address"]) as lane:
        served = await hello(lane, offer)
        assert served is not None
        await prove(lane, served, offer)
        await lane.next(Kind.LANE)
        await publisher.send(lane_frame("direct", HOT.encode()))
        yield lane


def words(frames: list[Frame]) -> list[str]:
    """The words among frames."""
    return [fields(frame)["word"] for frame in frames if frame.kind == Kind.LANE]


def tail(to: int, subject: str, body: bytes) -> bytes:
    """A message that a lane is said not to have brought."""
    frame = bytearray(encode(Kind.TAIL, subject.encode(), body, flags=Flag.BARE))
    frame[8:12] = to.to_bytes(4, "little")
    return bytes(frame)
