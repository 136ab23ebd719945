"""Pool of worker processes, one per service, started on the first connection."""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path

from weft.errors import WeftError
from weft.gateway.config.settings import Settings
from weft.gateway.front.fd_passing import AS_FRAMES, AS_LINK, Passed
from weft.gateway.front.preauth import STRANGE, UnauthenticatedConnection, check_link, check_start
from weft.gateway.front.rejections import Rejections
from weft.gateway.http.report import ServiceReport
from weft.gateway.keys.key_file import Records
from weft.gateway.mesh.membership import MeshMembership
from weft.gateway.service_pool_api import DECOY, Fulfil, admit, begun
from weft.gateway.worker.ipc import SettingsChange, Start, WorkerSettings
from weft.gateway.worker.supervisor import START_S, WorkerSupervisor
from weft.mesh.candidates import Candidate

_log = logging.getLogger(__name__)


class Pool:
    """Services of one gateway, each in its own process."""

    def __init__(
        self, settings: Settings, refusals: Rejections, keys: Records | None = None
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._refusals = refusals
        self._keepers: dict[str, WorkerSupervisor] = {}
        self._decoy: WorkerSupervisor | None = None
        # Since when each service is unused, and the number of connections passed to it by then.
        self._idle: dict[str, tuple[float, int]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self.on_return: Callable[[int], None] | None = None
        self.membership: MeshMembership | None = None
        self.fulfil: Fulfil | None = None

    @property
    def connections(self) -> int:
        """Number of connections, including those being passed."""
        keepers = [*self._keepers.values(), *filter(None, [self._decoy])]
        return sum([keeper.connections for keeper in keepers])

    @property
    def not_up(self) -> list[str]:
        """Services whose worker is starting or restarting."""
        return [name for name, keeper in self._keepers.items() if not keeper.up.is_set()]

    @property
    def silent(self) -> list[str]:
        """Services whose worker does not report turns of its event loop."""
        return [name for name, keeper in self._keepers.items() if keeper.is_silent]

    async def start(self) -> None:
        """Start the services named in the settings; slow ones keep starting in the background."""
        keepers = [self._keeper(service) for service in begun(self._settings)]
        # The supervisors log why; waiting without bound would keep the other services down.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_S):
                for keeper in keepers:
                    await keeper.up.wait()
        self._have_decoy()

    def give(self, service: str, fd: int, way: int = AS_FRAMES) -> None:
        """Pass an unread connection to its service, which owns it from now on.

        Raises:
            NoSuchService: This gateway does not run the service, or not for other gateways.
            WeftError: The service would have to be started, and check_start() refuses that.
            Overloaded: The service accepts no more connections for now.
        """
        if way == AS_LINK and self._keys is not None:
            is_there = service in self._keepers or service in self._settings.services
            check_link(fd, service, is_there, self.membership)
        elif service not in self._keepers:
            try:
                check_start(UnauthenticatedConnection(fd, service, way), self._settings, self._keys)
            except STRANGE as error:
                if self._decoy is None:
                    raise
                self._refusals.count(error, "")
                self._decoy.give(fd, way)
                return
        self._keeper(service).give(fd, way)

    def has(self, service: str) -> bool:
        """Return whether a service runs, so that a connection does not start it."""
        return service in self._keepers

    def end_idle(self) -> None:
        """Stop services that were unused for `idle_s`; called about once a second."""
        now = asyncio.get_running_loop().time()
        idle_s = self._settings.idle_s
        needed = begun(self._settings)
        for service, keeper in list(self._keepers.items()):
            since, handed_over = self._idle.get(service, (now, -1))
            if service in needed or not keeper.is_idle or handed_over != keeper.handed_over:
                self._idle[service] = (now, keeper.handed_over)
            elif idle_s and now - since >= idle_s:
                # A later connection starts a new worker.
                del self._keepers[service], self._idle[service]
                _log.info("stopping: unused for %s s", idle_s, extra=self._about(service))
                task = asyncio.get_running_loop().create_task(self._end(keeper))
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)

    def change(self, settings: Settings) -> None:
        """Apply new settings."""
        self._settings = settings
        change = SettingsChange(WorkerSettings.of(settings))
        for keeper in [*self._keepers.values(), *filter(None, [self._decoy])]:
            keeper.change(change)
        for service in settings.services:
            self._keeper(service)

    def set_keys(self, keys: Records | None) -> None:
        """Send every service its keys if they changed."""
        self._keys = keys
        for keeper in self._keepers.values():
            keeper.set_keys(keys)
        self._have_decoy()

    async def report(self) -> dict[str, ServiceReport]:
        """Return the status of every service, within a timeout."""
        keepers = dict(self._keepers)
        reports = await asyncio.gather(*(keeper.report() for keeper in keepers.values()))
        return dict(zip(keepers, reports, strict=True))

    async def nodes(self, service: str) -> tuple[Candidate, ...] | None:
        """Return the gateways of a service; None if it does not run or does not answer in time."""
        keeper = self._keepers.get(service)
        return None if keeper is None else await keeper.nodes()

    @property
    def running(self) -> list[str]:
        """Running services."""
        return list(self._keepers)

    async def drain(self, within_s: float) -> None:
        """Ask clients to reconnect elsewhere, flush and stop, within the timeout."""
        keepers = [*self._keepers.values(), *filter(None, [self._decoy])]
        await asyncio.gather(*(keeper.drain(within_s) for keeper in keepers))

    async def close(self) -> None:
        """Stop all services immediately."""
        keepers = [*self._keepers.values(), *filter(None, [self._decoy])]
        await asyncio.gather(*self._ending, *(keeper.close() for keeper in keepers))

    async def _end(self, keeper: WorkerSupervisor) -> None:
        await keeper.drain(self._settings.drain_s)
        await keeper.close()

    def _about(self, service: str) -> dict[str, str]:
        return {"gateway": self._settings.name, "service": service}

    def _keeper(self, service: str) -> WorkerSupervisor:
        settings = self._settings
        admit(service, self._keepers, settings, self._keys)
        keeper = self._keepers.get(service)
        if keeper is None:
            data = str(Path(settings.data).absolute()) if settings.data else ""
            start = Start(
                service,
                settings.name,
                WorkerSettings.of(settings),
                data,
                settings.journal,
                membership=self.membership,
            )
            keeper = self._keepers[service] = WorkerSupervisor(
                start, self._turn_away, self._returned
            )
            keeper.fulfil = self.fulfil
            keeper.set_keys(self._keys)
        return keeper

    def _have_decoy(self) -> None:
        """Start the decoy, which answers clients without a key for services that do not run.

        Only if there are keys. It is one more worker, whose service has no name and no keys: from
        its answers a client cannot tell which services run.
        """
        if self._keys is not None and self._decoy is None:
            settings = self._settings
            start = Start(DECOY, settings.name, WorkerSettings.of(settings), keys=())
            self._decoy = WorkerSupervisor(start, self._turn_away, self._returned)

    def _returned(self, fd: int) -> None:
        if self.on_return is None:
            os.close(fd)
        else:
            self.on_return(fd)

    def _turn_away(self, passed: Passed, error: WeftError) -> None:
        fd, way = passed
        self._refusals.refuse(socket.socket(fileno=fd), error, "", way)
