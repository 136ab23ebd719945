"""A receiver by hand: it listens, proves what it should, and then says what it likes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from tests.attacks.lane_stranger import HOT, LANES, Knowing, Scene, besieged, knowing
from tests.journeys.raw import LIMIT_S, fields, subscribe

import weft
from weft.lanes.settings import LaneSettings
from weft.wire.frames import Decoder, Frame, parse
from weft.wire.lane_messages import lane_frame
from weft.wire.lane_tickets import NONCE_BYTES, Proofs


class Listening:
    """A receiver by hand: what publishers say to it on lanes."""

    def __init__(self, receiver: Knowing, server: asyncio.Server) -> None:
        self.receiver = receiver
        self.port: int = server.sockets[0].getsockname()[1]
        self.frames: asyncio.Queue[Frame] = asyncio.Queue()
        self.writer: asyncio.StreamWriter | None = None

    async def hear(self, reader: asyncio.StreamReader) -> None:
        decoder = Decoder(1 << 20)
        while data := await reader.read(65_536):
            decoder.feed(data)
            while (frame := decoder.next_frame()) is not None:
                self.frames.put_nowait(parse(frame))

    async def next(self) -> Frame:
        async with asyncio.timeout(LIMIT_S):
            return await self.frames.get()

    def say(self, data: bytes) -> None:
        assert self.writer is not None
        self.writer.write(data)

    async def serve(self, invitation: dict[str, Any], *, begins: bool = True) -> None:
        """Answer a publisher as it should be; or hang up when it is proven."""
        shown = fields(await self.next())
        nonce = bytes(NONCE_BYTES)
        proofs = Proofs(invitation["key"], invitation["ticket"], shown["nonce"], nonce)
        self.say(lane_frame("serve", HOT.encode(), nonce=nonce, proof=proofs.by_receiver()))
        assert fields(await self.next())["word"] == "prove"
        if begins:
            self.say(lane_frame("ack", count=0))
        else:
            assert self.writer is not None
            self.writer.close()


@asynccontextmanager
async def listening(address: str, name: str) -> AsyncIterator[Listening]:
    """A receiver by hand that hears HOT, and has a port for lanes."""
    made: list[Listening] = []

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made[0].writer = writer
        # Both may hang up at once.
        with suppress(ConnectionError):
            await made[0].hear(reader)
        writer.close()

    server = await asyncio.start_server(met, "127.0.0.1", 0)
    async with server, knowing(address, name) as receiver:
        made.append(Listening(receiver, server))
        await receiver.say(subscribe(HOT))
        yield made[0]


async def ready(receiver: Knowing, port: int, unix: str = "", subject: str = HOT) -> dict[str, Any]:
    """Say that lanes lead to a port; the invitation that this answers."""
    invitation = await receiver.word("invite")
    said = lane_frame("ready", subject.encode(), ticket=invitation["ticket"], port=port, unix=unix)
    await receiver.send(said)
    return invitation


@asynccontextmanager
async def alone(lanes: LaneSettings = LANES) -> AsyncIterator[Scene]:
    """A gateway whose reader has left."""
    async with besieged(lanes) as scene:
        await scene.reader.close()
        yield scene


@asynccontextmanager
async def going_direct(name: str) -> AsyncIterator[tuple[Listening, weft.AsyncConnection]]:
    """A receiver by hand, and a publisher of which HOT goes by a lane to it."""
    async with (
        alone() as scene,
        listening(scene.gateway.address, name) as receiver,
        weft.connect(scene.gateway.address, name="writer") as writer,
    ):
        asking = asyncio.ensure_future(writer.direct(HOT))
        await receiver.serve(await ready(receiver.receiver, receiver.port))
        await asking
        yield receiver, writer
