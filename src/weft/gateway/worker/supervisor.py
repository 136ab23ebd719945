"""Supervisor of one service's worker process.

A worker that ends unexpectedly is restarted: at once, or after a growing pause if it keeps ending.
Sockets being passed wait for the next worker, unless that fails to start.
"""

import asyncio
import logging
import socket
import sys
from collections.abc import Callable

import msgspec

from weft.errors import Draining, InternalError, Overloaded, WeftError
from weft.gateway.front.fd_passing import AS_FRAMES, FdSender, Passed
from weft.gateway.http.report import ServiceReport, State
from weft.gateway.http.service_status import ServiceStatus
from weft.gateway.keys.key_file import Records
from weft.gateway.service_pool_api import Fulfil, fulfilled, keys_of
from weft.gateway.worker.ipc import (
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
    channel_to_worker,
)
from weft.gateway.worker.watchdog import TICK_S, Watchdog
from weft.mesh.candidates import Candidate
from weft.wire.message.message import Message

_log = logging.getLogger(__name__)

START_S = 10.0
ANSWER_S = 1.0
# A worker that ran this long resets the restart pause.
STABLE_S = 10.0
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
# Grace period for a worker to exit after it closed its stream, or after its drain timeout.
_GRACE_S = 1.0
# Time for a worker to write the rest of its journal, during which it sends no counts.
_CLOSING_S = 15.0


class WorkerSupervisor:
    """Supervisor of one service's worker, run by the front."""

    def __init__(
        self,
        start: Start,
        refuse: Callable[[Passed, WeftError], None],
        on_return: Callable[[int], None] | None = None,
    ) -> None:
        self._start = start
        self._keys: Records | None = None
        self._refuse = refuse
        self._outgoing = FdSender(on_return)
        self._channel: IpcChannel[Order, News] | None = None
        self._answers: dict[int, asyncio.Future[WorkerStatus | Nodes | None]] = {}
        self._asked = 0
        self._count = ConnectionCount(received=0, connections=0)
        self._is_ending = False
        self._is_closed = False
        self._last_exit = 0
        self._about = {"gateway": start.gateway, "service": start.service}
        self.up = asyncio.Event()
        self.fulfil: Fulfil | None = None
        self.pid: int | None = None
        self.restarts = 0
        self.hangs = 0
        self._watchdog: Watchdog | None = None
        self.handed_over = 0
        self._task = asyncio.get_running_loop().create_task(self._keep())

    @property
    def connections(self) -> int:
        """Number of the worker's connections, including those being passed."""
        outgoing = self._outgoing
        on_their_way = len(outgoing) + outgoing.sent - self._count.received
        return on_their_way + self._count.connections

    @property
    def is_idle(self) -> bool:
        """Return whether the worker has no connections, pending ones included, nor other use."""
        if self.connections:
            return False
        if self.up.is_set():
            return not self._count.is_needed
        # A worker that fails to start may have a journal to write.
        return not self._start.journal.patterns

    @property
    def is_silent(self) -> bool:
        """Return whether the worker has not reported a turn for some seconds."""
        return self._watchdog is not None and self._watchdog.is_silent

    def give(self, fd: int, way: int = AS_FRAMES) -> None:
        """Pass a connection to the worker, or to the next one.

        Raises:
            Overloaded: Too many connections are being passed.
        """
        self._outgoing.put(fd, way)
        self.handed_over += 1

    def change(self, change: SettingsChange) -> None:
        """Send new settings to the worker, and to every later one."""
        start = self._start
        self._start = msgspec.structs.replace(start, rules=change.rules)
        self._tell(change)

    def set_keys(self, keys: Records | None) -> None:
        """Send new keys to the worker, and to every later one; retried on the next call if refused.

        Does nothing if the keys are unchanged.
        """
        if keys is self._keys:
            return
        own = keys_of(self._start.service, keys)
        self._start = msgspec.structs.replace(self._start, keys=own)
        if self._tell(KeySet(own)):
            self._keys = keys

    async def report(self) -> ServiceReport:
        """Return the status of the worker, which has ANSWER_S to answer."""
        answer = await self._ask(Ask)
        status = answer.status if isinstance(answer, WorkerStatus) else None
        return ServiceReport(
            state=self._state(status),
            pid=self.pid,
            restarts=self.restarts,
            hangs=self.hangs,
            handed_over=self.handed_over,
            status=status,
        )

    async def nodes(self) -> tuple[Candidate, ...] | None:
        """Return the gateways of the service; None if the worker does not answer in ANSWER_S."""
        answer = await self._ask(AskNodes)
        return answer.nodes if isinstance(answer, Nodes) else None

    async def drain(self, within_s: float) -> None:
        """Drain and stop the worker, within the timeout."""
        self._is_ending = True
        self._tell(Drain(within_s))
        if not self.up.is_set():
            self._task.cancel()
        await asyncio.wait([self._task], timeout=within_s + _GRACE_S)

    async def close(self) -> None:
        """Stop the worker immediately, if it still runs."""
        if self._is_closed:
            return
        self._is_closed = True
        self._is_ending = True
        self._task.cancel()
        await asyncio.wait([self._task])
        self._outgoing.take_back()
        self._turn_away(Draining("the gateway is closing down"))
        self._outgoing.close()

    def _state(self, status: ServiceStatus | None) -> State:
        if self._is_ending:
            return "draining"
        if not self.up.is_set():
            return "starting"
        return "silent" if status is None else "up"

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        pause_s = 0.0
        while True:
            began = loop.time()
            status = await self._live()
            was_up = self.up.is_set()
            if not self._is_ending:
                self._say_ended(status)
            self._forget()
            if self._is_ending:
                return
            if not was_up:
                # The next one will hardly start either: clients need not wait for it.
                service = self._start.service
                self._turn_away(InternalError(f"service {service!r} cannot be started"))
            self.restarts += 1
            if loop.time() - began > STABLE_S:
                pause_s = 0.0
            await asyncio.sleep(pause_s)
            pause_s = min(max(2 * pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)

    async def _live(self) -> int | None:
        """Run one worker until it exits; return its exit status, None if it was not started."""
        try:
            return await self._run()
        except Exception:
            # The service must come back whatever the error: it is treated like a crash.
            _log.exception("failed to run the worker", extra=self._about)
            return None

    async def _run(self) -> int:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = await self._spawned(theirs)
            except BaseException:
                ours.close()
                raise
        self.pid = process.pid
        watching = asyncio.get_running_loop().create_task(self._watch(process))
        try:
            await self._talk(ours)
            await asyncio.wait_for(process.wait(), _GRACE_S)
        except TimeoutError:
            failed = "end" if self.up.is_set() else "start"
            text = "worker %s did not %s in time, killing it"
            _log.warning(text, process.pid, failed, extra=self._about)
        finally:
            watching.cancel()
            if process.returncode is None:
                process.kill()
            status = await process.wait()
        return status

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        """Kill the worker if it hangs; cancelled when it has exited."""
        await self.up.wait()
        watchdog = self._watchdog = Watchdog(process.pid)
        while True:
            await asyncio.sleep(TICK_S)
            limit_s = self._start.rules.watchdog_s
            if watchdog.tick(limit_s) and not self._is_ending:
                self.hangs += 1
                text = "worker %s made no turn for %s s, killing it"
                _log.error(text, process.pid, watchdog.silent_s, extra=self._about)
                process.kill()
                return

    async def _spawned(self, theirs: socket.socket) -> asyncio.subprocess.Process:
        descriptors = (theirs.fileno(), self._outgoing.far.fileno())
        return await asyncio.create_subprocess_exec(
            sys.executable,
            # Do not import from the folder that the gateway was started in.
            "-P",
            *("-m", "weft.gateway.worker.process", *map(str, descriptors)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            pass_fds=descriptors,
            # Signals of the terminal go to the front, which passes them on as orders.
            start_new_session=True,
        )

    async def _talk(self, ours: socket.socket) -> None:
        """Start the worker, then receive its messages until it closes the stream."""
        channel = await channel_to_worker(ours)
        try:
            channel.send(self._start)
            # From now on it is sent every change, in order.
            self._channel = channel
            async with asyncio.timeout(START_S):
                first = await channel.receive()
            if not isinstance(first, WorkerReady):
                return
            self._say_up()
            while (news := await channel.receive()) is not None:
                self._hear(news)
        finally:
            await channel.close()

    def _hear(self, news: News) -> None:
        if self._watchdog is not None:
            self._watchdog.heard()
        match news:
            case Closing():
                if self._watchdog is not None:
                    self._watchdog.allow(_CLOSING_S)
            case ConnectionCount():
                self._count = news
            case WorkerStatus(number) | Nodes(number):
                answer = self._answers.pop(number, None)
                if answer is not None and not answer.done():
                    answer.set_result(news)
            case GatewayRequest(number, verb, value):
                self._tell(Granted(number, *fulfilled(self.fulfil, verb, value)))
            case WorkerReady():
                pass

    async def _ask(self, question: type[Ask] | type[AskNodes]) -> WorkerStatus | Nodes | None:
        if not self.up.is_set():
            return None
        self._asked += 1
        number = self._asked
        answer = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        try:
            self._tell(question(number))
            return await asyncio.wait_for(answer, ANSWER_S)
        except TimeoutError:
            return None
        finally:
            self._answers.pop(number, None)

    def _tell(self, order: Order) -> bool:
        """Send the worker an order, if one runs; return False if it does not read."""
        if self._channel is not None:
            try:
                self._channel.send(order)
            except Overloaded as error:
                _log.warning("order not sent: %s", error, extra=self._about)
                return False
        return True

    def _forget(self) -> None:
        """Reset the state of the last worker."""
        self.up.clear()
        self.pid = None
        self._watchdog = None
        self._channel = None
        self._count = ConnectionCount(received=0, connections=0)
        self._outgoing.take_back()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_result(None)

    def _turn_away(self, error: WeftError) -> None:
        """Refuse all connections that wait for the worker."""
        for passed in self._outgoing.take_all():
            self._refuse(passed, error)

    def _say_up(self) -> None:
        self.up.set()
        _log.info("worker %s is up", self.pid, extra=self._about)
        if self.restarts:
            body = Message(
                service=self._start.service, exit=self._last_exit, restarts=self.restarts
            )
            self._tell(Announce("worker_restarted", body.encode()))

    def _say_ended(self, status: int | None) -> None:
        self._last_exit = -1 if status is None else status
        if status is not None and status < 0:
            how = f"was ended by signal {-status}"
        else:
            how = f"ended with status {status}"
        _log.warning("worker %s %s; starting another", self.pid, how, extra=self._about)
