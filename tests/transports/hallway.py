"""A service with all its doors on the running loop, and no front before it: sockets in pairs."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic_ns, time_ns

from tests.transports.middleman.raw_peer import LIMIT_S, MiddlemanPeer
from websockets.asyncio.client import connect

from weft.broker.auth.keys import KeyRecord, Keyring
from weft.broker.limits import Limits
from weft.broker.service import Service
from weft.broker.sweep import sweep
from weft.gateway.worker.http_routes import furnish
from weft.transports.http.origins import WebRules
from weft.transports.http.server import HttpServer
from weft.transports.loop.poller import Poll
from weft.transports.loop.turn import Turn

SERVICE = "weather"


class Hallway:
    """One service and its house."""

    def __init__(self, limits: Limits) -> None:
        self.service = Service(SERVICE, "london", 7, limits)
        self.service.now_ns, self.service.wall_ns = monotonic_ns(), time_ns()
        loop = asyncio.get_running_loop()
        self._turn = Turn(self.service, loop)
        self._poll = Poll(self._turn, loop)
        self.house = HttpServer(self._turn, self._poll, WebRules())
        furnish(self.house)

    def lock(self, *records: KeyRecord) -> None:
        """Let in those who have one of these keys, and nobody else."""
        self.service.set_keys(Keyring(records))
        self._turn.wake()

    def sweep(self) -> None:
        """Do what is done about once a second."""
        self.service.now_ns = monotonic_ns()
        sweep(self.service)
        self.house.sweep()
        self._turn.wake()

    @asynccontextmanager
    async def dialled(self) -> AsyncIterator[MiddlemanPeer]:
        """A WebSocket on which nothing was said."""
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        self.house.adopt(theirs.detach())
        url = f"ws://localhost/{SERVICE}/middleman"
        async with connect(url, sock=ours, open_timeout=LIMIT_S, compression=None) as made:
            yield MiddlemanPeer(made)

    @asynccontextmanager
    async def let_in(self, key: str = "any") -> AsyncIterator[MiddlemanPeer]:
        """A peer whose key was accepted."""
        async with self.dialled() as peer:
            await peer.send(key)
            assert await peer.recv() == "MM OK"
            yield peer

    def close(self) -> None:
        """End everybody."""
        self.house.close()
        self._poll.close()


@asynccontextmanager
async def hallway(limits: Limits | None = None) -> AsyncIterator[Hallway]:
    """A service to come to."""
    made = Hallway(limits or Limits())
    try:
        yield made
    finally:
        made.close()
