"""Services on the loop of the front, without worker processes: for tests and embedding."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from weft.gateway.config.settings import Settings, web_of
from weft.gateway.front.fd_passing import AS_FRAMES, AS_LINK
from weft.gateway.front.preauth import STRANGE, UnauthenticatedConnection, check_link, check_start
from weft.gateway.http.report import ServiceReport
from weft.gateway.keys.key_file import Records
from weft.gateway.mesh.membership import MeshMembership
from weft.gateway.service_pool_api import DECOY, Fulfil, admit, begun, fulfilled, keys_of
from weft.gateway.worker.host import ServiceHost
from weft.mesh.candidates import Candidate


class Inline:
    """The services of one gateway, all on the running loop."""

    def __init__(self, settings: Settings, keys: Records | None = None) -> None:
        self._settings = settings
        self._keys = keys
        self._hosts: dict[str, ServiceHost] = {}
        # Answers clients without a key for services that do not run; see Pool.
        self._decoy: ServiceHost | None = None
        self._handed_over: dict[str, int] = {}
        self._is_ending = False
        self.on_return: Callable[[int], None] | None = None
        self.membership: MeshMembership | None = None
        self.fulfil: Fulfil | None = None

    @property
    def connections(self) -> int:
        """Number of connections."""
        return sum([host.connections for host in self._all()])

    @property
    def not_up(self) -> list[str]:
        """Always empty: a service is up as soon as it exists."""
        return []

    @property
    def silent(self) -> list[str]:
        """Always empty: the services share the caller's loop."""
        return []

    async def start(self) -> None:
        """Start the services named in the settings."""
        for service in begun(self._settings):
            self._host(service)

    def give(self, service: str, fd: int, way: int = AS_FRAMES) -> None:
        """Pass an unread connection to its service, which owns it from now on.

        Raises:
            NoSuchService: This gateway does not run the service, or not for other gateways.
            WeftError: The service would have to be started, and check_start() refuses that.
        """
        if way == AS_LINK and self._keys is not None:
            is_there = service in self._hosts or service in self._settings.services
            check_link(fd, service, is_there, self.membership)
        elif service not in self._hosts:
            try:
                check_start(UnauthenticatedConnection(fd, service, way), self._settings, self._keys)
            except STRANGE:
                if self._keys is None:
                    raise
                self._decoy_host().adopt([(fd, way)])
                return
        self._host(service).adopt([(fd, way)])
        self._handed_over[service] += 1

    def has(self, service: str) -> bool:
        """Return whether a service runs, so that a connection does not start it."""
        return service in self._hosts

    def end_idle(self) -> None:
        """Do nothing: no service has a process to stop."""

    def change(self, settings: Settings) -> None:
        """Apply new settings."""
        self._settings = settings
        for host in self._all():
            host.set_limits(settings.limits)
            host.set_web(web_of(settings))
            host.set_mesh(settings.mesh)
            host.set_lanes(settings.lanes)
        for service in settings.services:
            self._host(service)

    def set_keys(self, keys: Records | None) -> None:
        """Send every service its keys if they changed."""
        if keys is not self._keys:
            self._keys = keys
            for service, host in self._hosts.items():
                host.set_keys(keys_of(service, keys))

    async def report(self) -> dict[str, ServiceReport]:
        """Return the status of every service."""
        return {
            service: ServiceReport(
                state="draining" if self._is_ending else "up",
                pid=os.getpid(),
                restarts=0,
                handed_over=self._handed_over[service],
                status=host.status(),
            )
            for service, host in self._hosts.items()
        }

    async def nodes(self, service: str) -> tuple[Candidate, ...] | None:
        """Return the gateways of a service; None if it does not run."""
        host = self._hosts.get(service)
        return None if host is None else tuple(host.candidates())

    @property
    def running(self) -> list[str]:
        """Running services."""
        return list(self._hosts)

    async def drain(self, within_s: float) -> None:
        """Ask clients to reconnect elsewhere and flush, within the timeout."""
        self._is_ending = True
        stall_s = self._settings.drain_stall_s
        await asyncio.gather(*(host.drain(within_s, stall_s) for host in self._all()))

    async def close(self) -> None:
        """End all services immediately."""
        await asyncio.gather(*(host.close() for host in self._all()))

    def _all(self) -> list[ServiceHost]:
        return [*self._hosts.values(), *filter(None, [self._decoy])]

    def _decoy_host(self) -> ServiceHost:
        if self._decoy is None:
            settings = self._settings
            self._decoy = ServiceHost(DECOY, settings.name, settings.limits, web_of(settings))
            self._decoy.set_keys(())
            if self.on_return is not None:
                self._decoy.on_stranger(self.on_return)
        return self._decoy

    def _wish(self, verb: str, value: str, tell: Callable[[str, str], None]) -> None:
        tell(*fulfilled(self.fulfil, verb, value))

    def _host(self, service: str) -> ServiceHost:
        admit(service, self._hosts, self._settings, self._keys)
        if service not in self._hosts:
            settings = self._settings
            host = ServiceHost(service, settings.name, settings.limits, web_of(settings))
            host.set_lanes(settings.lanes)
            data = Path(settings.data) if settings.data else None
            host.command(data, self._wish, settings.mesh)
            if data is not None:
                host.remember(data)
            host.set_keys(keys_of(service, self._keys))
            if settings.journal.patterns:
                host.keep(Path(settings.data), settings.journal)
            if self.membership is not None:
                host.link(self.membership)
            if self.on_return is not None:
                host.on_stranger(self.on_return)
            self._hosts[service] = host
            self._handed_over[service] = 0
        return self._hosts[service]
