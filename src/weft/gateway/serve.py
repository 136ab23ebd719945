"""Runs a gateway as a process of its own: signals, logs, exit status."""

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Callable

import uvloop

from weft.errors import BadOption, WeftError
from weft.gateway import logs
from weft.gateway.descriptors import raise_limit
from weft.gateway.gateway import Gateway
from weft.gateway.settings import Settings

_log = logging.getLogger(__name__)

DRAINED = 0
FAILED = 1
BAD_SETTINGS = 2

# A front makes few things that live long: looking for cycles often would find nothing.
_GC_THRESHOLDS = (50_000, 20, 100)


def serve(
    settings: Settings,
    read_again: Callable[[], Settings] | None = None,
    on_ready: Callable[[str], None] | None = None,
) -> int:
    """Run a gateway until it is told to end; the exit status that says how it went.

    Args:
        settings: what to run.
        read_again: gives the settings anew on SIGHUP; without it SIGHUP changes nothing.
        on_ready: called once with the address, when the gateway listens and its services are up.
    """
    logs.configure(settings.log, gateway=settings.name)
    raise_limit()
    server = Server(settings, read_again, on_ready)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(server.run())
    except WeftError as error:
        print(f"weft: {error}", file=sys.stderr)
        return BAD_SETTINGS if isinstance(error, BadOption) else FAILED


class Server:
    """A gateway and the signals it heeds."""

    def __init__(
        self,
        settings: Settings,
        read_again: Callable[[], Settings] | None,
        on_ready: Callable[[str], None] | None,
    ) -> None:
        self._settings = settings
        self._read_again = read_again
        self._on_ready = on_ready
        self._gateway = Gateway(settings=settings)
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()

    async def run(self) -> int:
        """Serve, then drain; a second signal cuts the drain short."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        try:
            await self._gateway.start()
            gc.freeze()
            gc.set_threshold(*_GC_THRESHOLDS)
            if self._on_ready is not None:
                self._on_ready(self._gateway.address)
            await self._stop.wait()
            return await self._drain()
        finally:
            await self._gateway.close()

    async def _drain(self) -> int:
        loop = asyncio.get_running_loop()
        draining = loop.create_task(self._gateway.drain())
        hurrying = loop.create_task(self._hurry.wait())
        tasks = {draining, hurrying}
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        if draining not in done:
            return FAILED
        draining.result()
        return DRAINED

    def _end(self) -> None:
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    def _reload(self) -> None:
        """Read the settings again; a mistake in them changes nothing."""
        about = {"gateway": self._settings.name}
        if self._read_again is None:
            _log.warning("SIGHUP: there is no settings file to read again", extra=about)
            return
        try:
            settings = self._read_again()
            waiting = self._gateway.change(settings)
        except WeftError as error:
            _log.error("SIGHUP: nothing is changed: %s", error, extra=about)
            return
        logs.configure(settings.log, gateway=self._settings.name)
        _log.info("SIGHUP: the settings were read again", extra=about)
        if waiting:
            _log.warning("SIGHUP: waits for a restart: %s", ", ".join(waiting), extra=about)
