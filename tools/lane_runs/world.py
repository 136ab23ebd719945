"""Time, and processes that share it: each has a loop of its own, and may get no time for a while.

Nothing here waits. The clock jumps to whatever is next, and which of several processes goes on is
drawn by lot, so a seed is all that a run depends on.
"""

import asyncio
import heapq
import random
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any

Act = Callable[[], object]


class World:
    """The clock, and what is to happen when."""

    def __init__(self, chance: random.Random) -> None:
        self.now = 0.0
        self.chance = chance
        self.processes: list[Process] = []
        # What went wrong where nobody was there to catch it.
        self.failures: list[str] = []
        self.trace: list[str] | None = None
        self._due: list[tuple[float, int, Act]] = []
        self._order = 0
        self._busy: list[Process] = []

    def at(self, when: float, act: Act) -> None:
        """Have something happen at a time."""
        self._order += 1
        heapq.heappush(self._due, (when, self._order, act))

    def after(self, delay_s: float, act: Act) -> None:
        """Have something happen after a while."""
        self.at(self.now + delay_s, act)

    def tell(self, text: str) -> None:
        """Note what happened, if anybody wants to know."""
        if self.trace is not None:
            self.trace.append(f"{self.now:10.6f} {text}")

    def wake(self, process: "Process") -> None:
        """A process has something to do."""
        if not process.is_awake:
            process.is_awake = True
            self._busy.append(process)

    def run(self, until: float) -> None:
        """Let everything happen up to a time."""
        while True:
            if self._busy:
                self._step()
            elif self._due and self._due[0][0] <= until:
                when, _, act = heapq.heappop(self._due)
                self.now = max(self.now, when)
                act()
            else:
                self.now = max(self.now, until)
                return

    def _step(self) -> None:
        busy = self._busy
        at = self.chance.randrange(len(busy)) if len(busy) > 1 else 0
        process = busy[at]
        busy[at] = busy[-1]
        busy.pop()
        process.is_awake = False
        process.step()


class Process(asyncio.AbstractEventLoop):
    """One program: a loop without a selector, whose time is the world's.

    The network is set by whoever makes the process; see network.py.
    """

    def __init__(self, world: World, name: str, host: str) -> None:
        self.world = world
        self.name = name
        self.host = host
        self.is_awake = False
        self.is_paused = False
        self.is_dead = False
        self.network: Any = None
        self._ready: deque[asyncio.Handle] = deque()
        # Timers that were due while it got no time: what came by the network goes first.
        self._late: list[asyncio.Handle] = []
        world.processes.append(self)

    # Getting time.

    def step(self) -> None:
        """Take one turn of the loop."""
        if self.is_paused or self.is_dead:
            return
        before = events._get_running_loop()
        events._set_running_loop(self)
        try:
            for _ in range(len(self._ready)):
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            events._set_running_loop(before)
        if self._ready:
            self.world.wake(self)

    def pause(self) -> None:
        """Get no time until resume()."""
        self.is_paused = True

    def resume(self) -> None:
        """Get time again."""
        self.is_paused = False
        self._ready += self._late
        self._late = []
        if self._ready:
            self.world.wake(self)

    def die(self) -> None:
        """Never get time again."""
        self.is_dead = True

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Have a task run here."""
        asyncio.Task(work, loop=self)

    def end(self) -> None:
        """Stop every task, so that none is left behind."""
        self.is_paused = self.is_dead = False
        for task in sorted(asyncio.all_tasks(self), key=asyncio.Task.get_name):
            task.cancel()
        self.resume()

    # What asyncio asks of a loop.

    def time(self) -> float:
        """The world's time."""
        return self.world.now

    def call_soon(  # type: ignore[override]  # callers are checked by the original
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Call in the next turn."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        if not self.is_awake and not self.is_paused:
            self.world.wake(self)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]  # there are no threads

    def call_later(  # type: ignore[override]  # callers are checked by the original
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call after a while."""
        return self.call_at(self.world.now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]  # callers are checked by the original
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call at a time."""
        handle = asyncio.TimerHandle(when, callback, list(args), self, context)
        self.world.at(when, lambda: self._ring(handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]  # callers are checked by the original
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: Any = None
    ) -> asyncio.Task[Any]:
        """A task of this loop."""
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def get_debug(self) -> bool:
        """Never."""
        return False

    def is_running(self) -> bool:
        """As long as there is a world."""
        return True

    def is_closed(self) -> bool:
        """Never."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Something failed where nobody was there to catch it."""
        error = context.get("exception")
        self.world.failures.append(f"{self.name}: {context.get('message')}: {error!r}")

    async def create_connection(  # type: ignore[override]  # only what clients ask for
        self, factory: Callable[[], Any], host: str, port: int, **_: object
    ) -> tuple[asyncio.Transport, Any]:
        """Connect to a port of a host."""
        return await self._connected(factory, (host, port))

    async def create_unix_connection(  # type: ignore[override]  # only what clients ask for
        self, factory: Callable[[], Any], path: str
    ) -> tuple[asyncio.Transport, Any]:
        """Connect to a name on the same host."""
        return await self._connected(factory, (self.host, path))

    async def create_server(  # type: ignore[override]  # only what clients ask for
        self, factory: Callable[[], Any], host: str, port: int
    ) -> Any:
        """Listen at a port of this host."""
        return self.network.listen(self, (host, port), factory)

    async def create_unix_server(  # type: ignore[override]  # only what clients ask for
        self, factory: Callable[[], Any], path: str
    ) -> Any:
        """Listen at a name on this host."""
        return self.network.listen(self, (self.host, path), factory)

    async def _connected(
        self, factory: Callable[[], Any], address: tuple[str, int | str]
    ) -> tuple[asyncio.Transport, Any]:
        connected: tuple[asyncio.Transport, Any] = await self.network.connect(
            self, address, factory
        )
        return connected

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is left out when its time comes."""

    def _ring(self, handle: asyncio.TimerHandle) -> None:
        if handle.cancelled():
            return
        if self.is_paused:
            self._late.append(handle)
            return
        self._ready.append(handle)
        self.world.wake(self)
