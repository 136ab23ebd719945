"""Worker process of one service: takes the sockets and orders that its front sends.

It exits on an order, on SIGTERM, and when its front has ended; each time it drains its connections
first.
"""

import asyncio
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import uvloop

from weft.gateway.config import log_format
from weft.gateway.config.settings import Log
from weft.gateway.front.fd_limits import raise_limit
from weft.gateway.front.fd_passing import give_back, receive
from weft.gateway.worker.host import ServiceHost
from weft.gateway.worker.ipc import (
    BEAT_S,
    Announce,
    Ask,
    AskNodes,
    Closing,
    ConnectionCount,
    Drain,
    GatewayRequest,
    Granted,
    IpcChannel,
    KeySet,
    News,
    Nodes,
    Order,
    SettingsChange,
    Start,
    WorkerReady,
    WorkerStatus,
    channel_to_front,
)
from weft.wire.message.message import Message

_log = logging.getLogger(__name__)

_START_S = 10.0
# Timeout for the worker of a killed front to release the journal's lock.
_LOCK_S = 5.0
# Drain timeout of a worker whose front has ended: it gets no new connections, and the next front
# needs its journal.
_ORPHAN_DRAIN_S = 1.0
# Longest delay of the connection count in the front.
_COUNT_S = 0.25
# The event of a restart waits this long for a subscription: clients have to reconnect first.
_HOLD_S = 5.0
# Most objects live as long as a connection: the default thresholds would collect in vain.
_GC_THRESHOLDS = (50_000, 20, 100)


class Worker:
    """One service in its own process."""

    def __init__(
        self, start: Start, channel: IpcChannel[News, Order], sockets: socket.socket
    ) -> None:
        self._start = start
        self._channel = channel
        self._sockets = sockets
        self._loop = asyncio.get_running_loop()
        self._host = ServiceHost(start.service, start.gateway, start.rules.limits, start.rules.web)
        self._host.set_lanes(start.rules.lanes)
        self._received = 0
        self._told = ConnectionCount(received=0, connections=0)
        self._held: list[tuple[float, Announce]] = []
        self._wishes: dict[int, Callable[[str, str], None]] = {}
        self._wished = 0
        data = Path(start.data) if start.data else None
        self._host.command(data, self._wish, start.rules.mesh)
        if data is not None:
            self._host.remember(data)
        self._host.set_keys(start.keys)
        if start.journal.patterns:
            self._host.keep(Path(start.data), start.journal, _LOCK_S)
        if start.membership is not None:
            self._host.link(start.membership)
        self._drain_s = start.rules.drain_s
        self._drain_stall_s = start.rules.drain_stall_s
        self._is_ending = asyncio.Event()

    async def run(self) -> None:
        """Serve until ordered or signalled to end."""
        self._loop.add_reader(self._sockets, self._adopt)
        self._host.stay(self._sockets.fileno(), looks=self._start.rules.looks)
        self._host.on_stranger(partial(give_back, self._sockets))
        self._loop.add_signal_handler(signal.SIGTERM, self._is_ending.set)
        self._channel.send(WorkerReady())
        try:
            async with asyncio.TaskGroup() as tasks:
                obeying = tasks.create_task(self._obey())
                counting = tasks.create_task(self._keep_counting())
                await self._is_ending.wait()
                # Connections still being passed wait for the next worker, if there is one.
                self._stop_adopting()
                await self._host.drain(self._drain_s, self._drain_stall_s)
                obeying.cancel()
                counting.cancel()
        finally:
            if self._channel.is_drained:
                self._channel.send(Closing())
            await self._host.close()

    def _adopt(self) -> None:
        """Take over one batch of sockets; the loop calls again for the next."""
        try:
            batch, lost = receive(self._sockets)
        except BlockingIOError:
            return
        except EOFError:
            self._stop_adopting()
            return
        self._received += len(batch) + lost
        if lost:
            _log.error("%s connections were lost: no file descriptors are left", lost)
        self._host.adopt(batch)

    def _stop_adopting(self) -> None:
        self._loop.remove_reader(self._sockets)
        self._host.leave()

    async def _obey(self) -> None:
        while (order := await self._channel.receive()) is not None:
            match order:
                case Ask(number):
                    self._channel.send(WorkerStatus(number, self._host.status()))
                case AskNodes(number):
                    self._channel.send(Nodes(number, tuple(self._host.candidates())))
                case SettingsChange(rules):
                    self._host.set_limits(rules.limits)
                    self._host.set_web(rules.web)
                    self._host.set_mesh(rules.mesh)
                    self._host.set_lanes(rules.lanes)
                    self._host.look(looks=rules.looks)
                    self._drain_s = rules.drain_s
                    self._drain_stall_s = rules.drain_stall_s
                    self._log_by(rules.log)
                case KeySet(keys):
                    self._host.set_keys(keys)
                case Announce():
                    self._held.append((self._loop.time() + _HOLD_S, order))
                case Granted(number, problem, text):
                    self._wishes.pop(number)(problem, text)
                case Drain(within_s):
                    self._drain_s = within_s
                    self._is_ending.set()
        if not self._is_ending.is_set():
            _log.warning("the front has ended; draining")
            self._drain_s = min(self._drain_s, _ORPHAN_DRAIN_S)
            self._is_ending.set()

    async def _keep_counting(self) -> None:
        """Send the front the number of connections on every change, and at least every BEAT_S."""
        beat_at = 0.0
        while True:
            await asyncio.sleep(_COUNT_S)
            count = ConnectionCount(self._received, self._host.connections, self._host.is_needed)
            is_due = self._loop.time() >= beat_at
            # A front that was stopped for hours must not find hours of counts.
            if count != self._told or (is_due and self._channel.is_drained):
                self._channel.send(count)
                self._told = count
                beat_at = self._loop.time() + BEAT_S
            if self._held:
                self._announce()

    def _announce(self) -> None:
        is_heard = self._host.status().subscriptions > 0
        now = self._loop.time()
        for until, news in list(self._held):
            if is_heard or until <= now:
                self._held.remove((until, news))
                self._host.announce(news.event, Message.from_body(news.body))

    def _wish(self, verb: str, value: str, tell: Callable[[str, str], None]) -> None:
        self._wished += 1
        self._wishes[self._wished] = tell
        self._channel.send(GatewayRequest(self._wished, verb, value))

    def _log_by(self, log: Log) -> None:
        log_format.configure(log, gateway=self._start.gateway, service=self._start.service)


async def serve(control: socket.socket, sockets: socket.socket) -> None:
    """Run the worker for the front at the other end of `control` until it ends."""
    channel = await channel_to_front(control)
    try:
        async with asyncio.timeout(_START_S):
            start = await channel.receive()
        if not isinstance(start, Start):
            return
        log_format.configure(start.rules.log, gateway=start.gateway, service=start.service)
        worker = Worker(start, channel, sockets)
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_GC_THRESHOLDS)
        await worker.run()
    finally:
        await channel.close()


def main(arguments: list[str]) -> int:
    """Run one worker on the two file descriptors given by its front; return its exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise_limit()
    control, sockets = (socket.socket(fileno=int(each)) for each in arguments)
    sockets.setblocking(False)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(control, sockets))
    except Exception:
        _log.exception("the worker failed")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
