"""Runtime of a gateway: creates and connects its parts on the running loop."""

import asyncio
import importlib.util
import ipaddress
import logging
import time
from pathlib import Path

import msgspec

from weft import distribution
from weft.errors import BadOption, Overloaded
from weft.gateway.config.mesh_settings import MeshSettings
from weft.gateway.config.settings import Settings, SocketAddress, web_of
from weft.gateway.front import fd_limits
from weft.gateway.front.fd_limits import ConnectionLimits
from weft.gateway.front.front import Front
from weft.gateway.front.rejections import Rejections
from weft.gateway.front.tls import TlsConnections
from weft.gateway.http.pages import GatewayPages
from weft.gateway.http.report import FrontReport, GatewayReport
from weft.gateway.http.server import GatewayHttpServer
from weft.gateway.journal.lend import Lending
from weft.gateway.keys.manage import revoke_keys
from weft.gateway.keys.watch import LOOK_S, KeyWatch
from weft.gateway.mesh.membership import located, membership_of
from weft.gateway.service_pool_api import Fulfil, Services, admit, fulfilled
from weft.gateway.worker.inline import Inline
from weft.gateway.worker.pool import Pool
from weft.journal.segment.file_names import FOLDER, services_in
from weft.mesh.candidates import Candidate, lone, reachable

_log = logging.getLogger(__name__)

# Settings that cannot change at run time.
FIXED = ("name", "listen", "data", "journal")
_JOURNAL_PACKAGES = ("crc32c", "pyarrow")
# Settings of the mesh that can.
MESH_CHANGEABLE = {"join", "registry", "plain", "tls_ca", "admins"}


class GatewayRuntime:
    """Front, services, HTTP and TLS of one gateway."""

    def __init__(self, settings: Settings, *, is_inline: bool) -> None:
        """Start to listen; connections are served after start().

        Raises:
            BadOption: Unusable certificate, key, key file or file for the mesh, or a missing
                package.
            UsageError: Cannot listen on the address.
        """
        _check_packages(settings)
        self._settings = settings
        self._keys = KeyWatch(settings.data, settings.name)
        self._is_inline = is_inline
        self._started = time.monotonic()
        self._is_draining = False
        self._room = self._room_for(settings)
        membership = membership_of(settings)
        self._refusals = Rejections(settings.name)
        limits = settings.limits
        self._encryption: TlsConnections | None = None
        if settings.tls.is_on:
            self._encryption = TlsConnections(settings.tls, self._refusals)
            self._encryption.change(limits.greeting_s, self._room.pending)
        self._services: Services
        if is_inline:
            self._services = Inline(settings, self._keys.records)
        else:
            self._services = Pool(settings, self._refusals, self._keys.records)
        # Executes commands that are not handled here; see Gateway.
        self.fulfil: Fulfil | None = None
        self._services.fulfil = self._fulfil
        self._lending = _lending(settings)
        if self._lending is not None:
            self._lending.on_refused = self._refusals.count
        self._web = GatewayHttpServer(
            GatewayPages(self).page, self._refusals, web_of(settings), self._keys, self._lending
        )
        self._web.change(limits.greeting_bytes, limits.greeting_s)
        self._front = Front(self._services, self._refusals, self._web, self._encryption)
        self._front.open(settings, self._room)
        if membership is not None:
            self._services.membership = located(membership, settings, self.address)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(LOOK_S, self._look_at_keys, loop)

    @property
    def address(self) -> SocketAddress:
        """Actual listen address."""
        return self._front.address

    @property
    def unready(self) -> str:
        """Reason why it is not ready; empty if it is."""
        if self._is_draining:
            return "draining"
        not_up, silent = sorted(self._services.not_up), sorted(self._services.silent)
        reasons = [
            f"not up: {', '.join(not_up)}" if not_up else "",
            f"not responding: {', '.join(silent)}" if silent else "",
        ]
        return "; ".join(filter(None, reasons))

    async def start(self) -> None:
        """Start the services named in the settings, and wait for them."""
        scheme = "" if self._encryption is None else "tls://"
        self._say("listening on %s%s", scheme, self.address)
        if self._encryption is None and not ipaddress.ip_address(self.address.host).is_loopback:
            about = {"gateway": self._settings.name}
            _log.warning("TLS is off: keys and messages travel unencrypted", extra=about)
        await self._services.start()

    def change(self, settings: Settings) -> list[str]:
        """Apply new settings; return the keys that need a restart.

        Raises:
            BadOption: Unusable certificate, key or file for the mesh; no setting is changed.
        """
        settings, waiting = self._without_fixed(settings)
        # After removing fixed settings: a data folder that is not used yet gets no node key.
        membership_of(settings)
        limits = settings.limits
        if self._encryption is not None:
            self._encryption.load(settings.tls)
        self._settings = settings
        self._room = self._room_for(settings)
        if self._encryption is not None:
            self._encryption.change(limits.greeting_s, self._room.pending)
        self._web.change(limits.greeting_bytes, limits.greeting_s)
        self._front.change(settings, self._room)
        self._services.change(settings)
        return waiting

    async def report(self) -> GatewayReport:
        """Return the status of the gateway, its front and its services, within a timeout."""
        services = await self._services.report()
        front = self._front
        return GatewayReport(
            gateway=self._settings.name,
            address=str(self.address),
            version=distribution.installed_version(),
            uptime_s=time.monotonic() - self._started,
            state="draining"
            if self._is_draining
            else "starting"
            if self._services.not_up
            else "ready",
            connections=self._services.connections,
            connections_max=self._room.connections,
            keys=len(self._keys.records or ()),
            keys_problem=self._keys.problem,
            journals=_journals(self._settings),
            front=FrontReport(
                accepted=front.accepted,
                pending=front.pending,
                pending_max=self._room.pending,
                pauses=front.pauses,
                http=self._web.answered,
                encrypted=0 if self._encryption is None else len(self._encryption),
                refused=dict(self._refusals.counts),
            ),
            services=services,
        )

    @property
    def name(self) -> str:
        """Its configured name."""
        return self._settings.name

    @property
    def running(self) -> list[str]:
        """Running services."""
        return self._services.running

    async def nodes(self, service: str) -> tuple[Candidate, ...]:
        """Return the known gateways of a service, this one first.

        Raises:
            NoSuchService: This gateway does not run the service.
            Overloaded: The service does not answer in time.
        """
        settings = self._settings
        if service not in self._services.running:
            # The service would start on the first connection.
            admit(service, self._services.running, settings, self._keys.records)
            found: tuple[Candidate, ...] | None = (lone(service, settings.name),)
        else:
            found = await self._services.nodes(service)
        if not found:
            raise Overloaded(f"service {service!r} does not answer at the moment")
        own, *others = found
        membership = self._services.membership
        scheme = "" if self._encryption is None else "tls://"
        address = f"{scheme}{self.address}" if membership is None else membership.address
        own = msgspec.structs.replace(
            own,
            address=own.address or reachable(address),
            region=own.region or settings.mesh.region,
            is_draining=own.is_draining or self._is_draining,
        )
        return own, *others

    async def drain(self, within_s: float) -> None:
        """Stop accepting, ask clients to reconnect elsewhere, and flush, within the timeout."""
        if self._is_draining:
            return
        self._is_draining = True
        self._say("draining, at most %s s", within_s)
        began = time.monotonic()
        self._front.close()
        await self._services.drain(within_s)
        if self._encryption is not None:
            left_s = max(0.0, within_s - (time.monotonic() - began))
            await self._encryption.drain(left_s, self._settings.drain_stall_s)

    async def close(self) -> None:
        """End all connections and services immediately."""
        self._is_draining = True
        self._timer.cancel()
        self._front.close()
        await self._web.close()
        if self._lending is not None:
            await self._lending.close()
        await self._services.close()
        if self._encryption is not None:
            await self._encryption.close()
        self._say("closed")

    def _fulfil(self, verb: str, value: str) -> str:
        """Execute an admin command that concerns the whole gateway; return a sentence about it."""
        if verb == "ban":
            if not self._settings.data:
                raise BadOption("this gateway has no keys")
            revoked = revoke_keys(Path(self._settings.data), value)
            self._follow_keys()
            return f"{', '.join(each.id for each in revoked)} revoked"
        problem, text = fulfilled(self.fulfil, verb, value)
        if problem:
            raise BadOption(problem)
        return text

    def _look_at_keys(self, loop: asyncio.AbstractEventLoop) -> None:
        """Check the key file and idle services; runs every LOOK_S."""
        self._timer = loop.call_later(LOOK_S, self._look_at_keys, loop)
        self._follow_keys()
        self._services.end_idle()

    def _follow_keys(self) -> None:
        self._keys.look()
        # Every time: a service that refused the keys is sent them again.
        self._services.set_keys(self._keys.records)

    def _without_fixed(self, settings: Settings) -> tuple[Settings, list[str]]:
        """Return the settings that can change now, and the keys of the others."""
        now = self._settings
        waiting = [key for key in FIXED if getattr(settings, key) != getattr(now, key)]
        if settings.tls.is_on != now.tls.is_on:
            waiting.append("tls")
        kept = {key: getattr(now, key) for key in waiting}
        others = _changed(settings.mesh, now.mesh)
        if not MESH_CHANGEABLE.issuperset(others):
            # All of [mesh]: permitted addresses depend on how other gateways are authenticated.
            kept["mesh"] = now.mesh
            waiting += [f"mesh.{key}" for key in others]
        if settings.limits.body_bytes != now.limits.body_bytes:
            # Running services have allocated their buffers; only services started later follow.
            waiting.append("limits.body_bytes")
        return msgspec.structs.replace(settings, **kept), waiting

    def _room_for(self, settings: Settings) -> ConnectionLimits:
        worker = None if self._is_inline else fd_limits.limit_of_worker()
        room = fd_limits.room(settings, fd_limits.limit_here(), worker)
        for key, allowed in zip(ConnectionLimits._fields, room, strict=True):
            if allowed < getattr(settings, key):
                text = "%s is lowered to %s by the limit on open files"
                _log.info(text, key, allowed, extra={"gateway": settings.name})
        return room

    def _say(self, text: str, *values: object) -> None:
        _log.info(text, *values, extra={"gateway": self._settings.name})


def _changed(mesh: MeshSettings, before: MeshSettings) -> list[str]:
    """Return the keys that differ."""
    keys = mesh.__struct_fields__
    return [key for key in keys if getattr(mesh, key) != getattr(before, key)]


def _journals(settings: Settings) -> tuple[str, ...]:
    """Return the services that have a journal on disk."""
    return tuple(services_in(Path(settings.data) / FOLDER)) if settings.data else ()


def _check_packages(settings: Settings) -> None:
    """Check that the packages that the journal needs are installed.

    Raises:
        BadOption: Missing package.
    """
    if not settings.journal.patterns:
        return
    for package in _JOURNAL_PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise BadOption(f'the journal needs {package}: pip install "weft-mesh[journal]"')


def _lending(settings: Settings) -> Lending | None:
    """Return the file server of the journal, if there is a journal."""
    if not settings.journal.patterns:
        return None
    patterns = tuple(pattern.encode() for pattern in settings.journal.patterns)
    return Lending(Path(settings.data), settings.name, patterns)
