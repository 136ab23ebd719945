"""Gateway as its own process: signals, logs, exit status."""

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Callable

import msgspec
import uvloop

from weft.errors import BadOption, WeftError, shortened
from weft.gateway.config import log_format
from weft.gateway.config.settings import Log, Settings
from weft.gateway.front.fd_limits import raise_limit
from weft.gateway.gateway import Gateway

_log = logging.getLogger(__name__)

DRAINED = 0
FAILED = 1
BAD_SETTINGS = 2

# Delay of a drain by admin command, in which its result is sent.
TOLD_S = 0.2
# A front creates few long-lived objects: the default thresholds would collect in vain.
_GC_THRESHOLDS = (50_000, 20, 100)


def serve(
    settings: Settings,
    read_again: Callable[[], Settings] | None = None,
    on_ready: Callable[[str], None] | None = None,
) -> int:
    """Run a gateway until a signal or command ends it; return the exit status.

    Args:
        settings: The settings to start with.
        read_again: Returns the settings to apply on SIGHUP; without it SIGHUP is logged only.
        on_ready: Called once with the address, when the gateway listens and its services are up.
    """
    log_format.configure(settings.log, gateway=settings.name)
    raise_limit()
    server = Server(settings, read_again, on_ready)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(server.run())
    except WeftError as error:
        print(f"weft: {error}", file=sys.stderr)
        return BAD_SETTINGS if isinstance(error, BadOption) else FAILED


class Server:
    """A gateway and its signal handlers."""

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
        self._gateway.fulfil = self._fulfil
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()

    async def run(self) -> int:
        """Serve, then drain; a second signal ends the drain early."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)
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

    def _hang_up(self) -> None:
        """Reload the settings; invalid settings change nothing."""
        about = {"gateway": self._settings.name}
        try:
            waiting = self._reload()
        except WeftError as error:
            _log.error("SIGHUP: settings unchanged: %s", error, extra=about)
            return
        _log.info("SIGHUP: the settings were read again", extra=about)
        if waiting:
            _log.warning("SIGHUP: waits for a restart: %s", ", ".join(waiting), extra=about)

    def _reload(self) -> list[str]:
        if self._read_again is None:
            raise BadOption("there is no settings file to read again")
        return self._change(self._read_again())

    def _change(self, settings: Settings) -> list[str]:
        waiting = self._gateway.change(settings)
        self._settings = msgspec.structs.replace(settings, name=self._settings.name)
        log_format.configure(settings.log, gateway=self._settings.name)
        return waiting

    def _fulfil(self, verb: str, value: str) -> str:
        """Execute an admin command; return a sentence about the result."""
        match verb:
            case "drain":
                # After the result was sent to the administrator.
                asyncio.get_running_loop().call_later(TOLD_S, self._end)
                return f"draining, at most {self._settings.drain_s} s"
            case "reload":
                waiting = self._reload()
                return f"waits for a restart: {', '.join(waiting)}" if waiting else "read again"
            case "log":
                return self._log_at(value)
            case _:
                raise BadOption(f"there is no command {shortened(verb)}")

    def _log_at(self, level: str) -> str:
        try:
            log = msgspec.convert({**msgspec.to_builtins(self._settings.log), "level": level}, Log)
        except msgspec.ValidationError as error:
            levels = "debug, info, warning or error"
            raise BadOption(f"level {shortened(level)} is not {levels}") from error
        self._change(msgspec.structs.replace(self._settings, log=log))
        return f"logs at {level} until the settings are read again"
