"""Host of one service on the running loop: takes over connected sockets and runs its turns."""

import asyncio
import contextlib
import logging
import os
import secrets
from array import array
from collections.abc import Callable
from pathlib import Path
from time import monotonic_ns, time_ns
from typing import TYPE_CHECKING

from weft.broker.auth.keys import KeyRecord, Keyring
from weft.broker.limits import Limits
from weft.broker.service import Peer, Service
from weft.broker.sweep import sweep
from weft.broker.system_events import announce
from weft.broker.system_requests import status_facts
from weft.errors import BadOption
from weft.gateway.config.mesh_settings import MeshSettings
from weft.gateway.config.settings import DRAIN_STALL_S, JournalSettings
from weft.gateway.front.fd_passing import AS_HTTP, AS_LINK, Passed
from weft.gateway.front.remote_address import host_of
from weft.gateway.http.service_status import ServiceStatus
from weft.gateway.mesh.membership import MeshMembership
from weft.gateway.requests.channels import ChannelDesk
from weft.gateway.requests.lanes import LaneDesk
from weft.gateway.requests.mesh import MeshDesk
from weft.gateway.worker.drain import StalledClients, clients_of, end_client, say_goodbye
from weft.gateway.worker.http_routes import furnish
from weft.lanes.settings import LaneSettings
from weft.mesh.candidates import Candidate, candidates, elsewhere
from weft.transports.http.origins import WebRules
from weft.transports.http.server import HttpServer
from weft.transports.loop.poller import Poll
from weft.transports.loop.turn import Turn
from weft.transports.peer_address import peer_address
from weft.transports.tcp import TcpDoor
from weft.wire.message.message import Message

if TYPE_CHECKING:
    from weft.gateway.journal.service_journal import Journaling, NoJournal
    from weft.gateway.mesh.execute_command import Wish
    from weft.gateway.mesh.service_mesh import Meshing
    from weft.gateway.requests.commands import CommandDesk
    from weft.mesh.node import MeshNode

_log = logging.getLogger(__name__)

SWEEP_S = 1.0
# Timeout for writing the rest of the journal.
JOURNAL_END_S = 5.0
# Interval between attempts to open a journal that failed to open.
JOURNAL_RETRY_S = 1.0
# Most of a drain's time that is reserved for flushing to other gateways.
LAST_WORDS_S = 2.0

_TOKEN_BYTES = 8
_SECRET_BYTES = 32


class ServiceHost:
    """A service, its journal if it has one, and the transports of its connections."""

    def __init__(
        self, service: str, gateway: str, limits: Limits, web: WebRules | None = None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        # A new origin for each start: its sequence numbers start at 0 again.
        origin = secrets.randbits(32) or 1
        self._service = Service(service, gateway, origin, limits, os.urandom(_SECRET_BYTES))
        self._tick()
        self._started_ns = monotonic_ns()
        self._turn = Turn(self._service, self._loop)
        self._poll = Poll(self._turn, self._loop)
        self._house = HttpServer(self._turn, self._poll, web or WebRules())
        furnish(self._house)
        self._mesh_desk = MeshDesk(self._turn)
        self._channel_desk = ChannelDesk(self._turn)
        self._lane_desk = LaneDesk(self._turn)
        self._command_desk: CommandDesk | None = None
        self._is_closed = False
        self._journaling: Journaling | None = None
        self._no_journal: NoJournal | None = None
        self._journal_timer: asyncio.TimerHandle | None = None
        self._meshing: Meshing | None = None
        # Connections that wait for the first link.
        self._early: list[Passed] = []
        self._timer = self._loop.call_later(SWEEP_S, self._sweep)

    @property
    def connections(self) -> int:
        """Number of client connections, before or after their handshake; links do not count."""
        links = 0 if self._meshing is None else self._meshing.links
        return len(self._service.peers) - links + self._house.connections + len(self._early)

    @property
    def is_needed(self) -> bool:
        """Return whether the service is needed without connections: linked, or with a journal."""
        if self._meshing is not None and self._meshing.links:
            return True
        return self._journaling is not None and self._journaling.status().position > 0

    def command(self, data: Path | None, wish: "Wish", mesh: MeshSettings) -> None:
        """Execute admin commands from now on and log them in `data`; called before set_keys().

        `wish` passes commands for the whole gateway to the front. Without the optional packages no
        commands are executed.
        """
        try:
            from weft.gateway.requests.commands import CommandDesk  # noqa: PLC0415  # needs an extra
        except ModuleNotFoundError:
            return
        desk = self._command_desk = CommandDesk(self._turn, wish, self.status, mesh.region)
        desk.set_others(mesh.admins)
        if data is not None:
            desk.keep(data)

    def remember(self, data: Path) -> None:
        """Store lease votes of channels below a folder; called before link()."""
        self._channel_desk.remember(data)

    def keep(self, data: Path, settings: JournalSettings, wait_s: float = 0.0) -> None:
        """Open the journal; called before the first connection.

        Blocks for up to `wait_s` while the previous process that wrote it ends.

        Raises:
            BadOption: Another gateway writes the journal, or a package for it is missing.
            OSError: The journal is unreadable, or its folder cannot be created.
        """
        try:
            from weft.gateway.journal.service_journal import Journaling, NoJournal  # noqa: PLC0415  # an extra
        except ModuleNotFoundError as error:
            raise BadOption(
                f'the journal needs {error.name}: pip install "weft-mesh[journal]"'
            ) from error
        try:
            self._journaling = Journaling(self._turn, self._poll, data, settings, wait_s)
        except OSError as error:
            # As with a later disk error: live traffic goes on, and opening is retried.
            problem = error.strerror or str(error)
            _log.error("journal: failed to open: %s", error)  # no traceback
            self._no_journal = NoJournal(self._turn, settings, problem)
            self._begin_later(data, settings)

    def _begin_later(self, data: Path, settings: JournalSettings) -> None:
        self._journal_timer = self._loop.call_later(
            JOURNAL_RETRY_S, self._begin_again, data, settings
        )

    def _begin_again(self, data: Path, settings: JournalSettings) -> None:
        from weft.gateway.journal.service_journal import Journaling  # noqa: PLC0415  # needs an extra

        self._tick()
        waiting = self._no_journal
        if waiting is None or self._is_closed:
            return
        try:
            begun = Journaling(self._turn, self._poll, data, settings, 0.0)
        except (OSError, BadOption):
            self._begin_later(data, settings)
            return
        waiting.end()
        self._no_journal = None
        self._journaling = begun
        _log.warning("journal: opened; messages are stored from now on")

    def link(self, membership: MeshMembership) -> None:
        """Join a mesh; called before the first connection, and after set_keys().

        With keys, only if the mesh has a secret or a roster to authenticate other gateways.
        """
        from weft.gateway.mesh.service_mesh import Meshing  # noqa: PLC0415  # needs an extra

        if self._service.keyring is None or membership.mesh.is_guarded:
            self._meshing = Meshing(self._turn, self._poll, membership)
            self._meshing.on_settled = self._adopt_early
            self._mesh_desk.fabric = self._meshing.fabric
            self._channel_desk.link(self._meshing.fabric, membership.mesh.gateways)
            if self._command_desk is not None:
                self._command_desk.link(self._meshing.fabric)

    def adopt(self, batch: list[Passed]) -> None:
        """Take over connected, non-blocking, unread sockets."""
        if self._meshing is not None and not self._meshing.is_settled:
            self._early += [passed for passed in batch if passed[1] != AS_LINK]
            batch = [passed for passed in batch if passed[1] == AS_LINK]
        self._tick()
        # One call for the batch: a call for each would cost as much as the rest of this function.
        tokens = array("Q", os.urandom(_TOKEN_BYTES * len(batch)))
        for (fd, way), token in zip(batch, tokens, strict=True):
            try:
                if way == AS_HTTP:
                    self._house.adopt(fd)
                else:
                    peer = TcpDoor(self._turn, self._poll, fd).open(token)
                    # With TLS only the host is known.
                    peer.address = peer_address(fd) or host_of(fd)
            except OSError as error:
                os.close(fd)
                _log.error("a connection was lost: it cannot be polled: %s", error.strerror)

    def on_stranger(self, take: Callable[[int], None]) -> None:
        """Set the callback for a connection whose next request is for another service."""
        self._house.on_stranger = take

    def stay(self, guest: int, *, looks: bool) -> None:
        """Run turns without returning to the loop, which has little to read but `guest`."""
        self._poll.stay(guest)
        self._poll.looks = looks

    def look(self, *, looks: bool) -> None:
        """Set whether to busy-poll before blocking."""
        self._poll.looks = looks

    def leave(self) -> None:
        """Return to the loop after each turn."""
        self._poll.leave()

    def status(self) -> ServiceStatus:
        """Return the status of the service."""
        self._tick()
        uptime_s = (monotonic_ns() - self._started_ns) / 1e9
        keeper = self._journaling or self._no_journal
        journal = None if keeper is None else keeper.status()
        mesh = None if self._meshing is None else self._meshing.status()
        facts = status_facts(self._service)
        channels = self._channel_desk.channels
        return ServiceStatus(
            **facts,
            uptime_s=uptime_s,
            channels_here=len(channels.admissions),
            channels=len(channels.table.all()),
            **self._lane_desk.counts(),
            journal=journal,
            mesh=mesh,
        )

    def candidates(self) -> list[Candidate]:
        """Return the known gateways of the service, this one first."""
        self._tick()
        return candidates(self._service, self._fabric)

    def announce(self, event: str, message: Message) -> None:
        """Publish an event of the gateway."""
        self._tick()
        announce(self._service, event, message)
        self._turn.wake()

    def set_limits(self, limits: Limits) -> None:
        """Apply other limits, except the largest body."""
        self._service.set_limits(limits)

    def set_web(self, web: WebRules) -> None:
        """Apply other settings for pages and scripts."""
        self._house.rules = web

    def set_lanes(self, lanes: LaneSettings) -> None:
        """Apply other settings for lanes."""
        self._lane_desk.set(lanes)

    def set_mesh(self, mesh: MeshSettings) -> None:
        """Apply other settings for the mesh, as far as they can change at run time."""
        if self._meshing is not None:
            self._meshing.change(mesh)
        if self._command_desk is not None:
            self._command_desk.set_others(mesh.admins)

    def set_keys(self, keys: tuple[KeyRecord, ...] | None) -> None:
        """Replace the accepted keys; None trusts every client.

        Connected peers whose key is no longer accepted are sent the reason and ended.
        """
        self._tick()
        self._service.set_keys(None if keys is None else Keyring(keys))
        if self._command_desk is not None:
            self._command_desk.set_keys(keys or ())
        if keys is not None and self._meshing is not None:
            self._meshing.heed_keys()
        self._turn.wake()

    async def drain(self, within_s: float, stall_s: float = DRAIN_STALL_S) -> None:
        """Ask clients to reconnect elsewhere and wait until they have left, within the timeout.

        Does not wait for clients that make no progress for `stall_s`.
        """
        self._adopt_early()
        self._tick()
        self._service.is_draining = True
        say_goodbye(self._service, self._elsewhere())
        self._turn.wake()
        self._house.drain(stall_s)
        stalled = StalledClients(self._turn, self._house, stall_s)
        began = self._loop.time()
        try:
            with contextlib.suppress(TimeoutError):
                # Other gateways are flushed after the clients.
                async with asyncio.timeout(within_s - self._last_words_s(within_s)):
                    await self._parted()
                    await self._house.emptied()
        finally:
            stalled.stop()
        if self._meshing is not None:
            await self._meshing.leave(max(0.0, within_s - (self._loop.time() - began)))

    async def close(self) -> None:
        """End all connections immediately."""
        if self._is_closed:
            return
        self._is_closed = True
        self._timer.cancel()
        if self._meshing is not None:
            await self._meshing.close()
        self._adopt_early()
        self._turn.flush()
        for peer in list(self._service.peers.values()):
            owed = peer.outbox.owed()
            end_client(peer, f"it was owed {owed} bytes when the gateway closed (drain_s)")
        self._house.close()
        if self._journal_timer is not None:
            self._journal_timer.cancel()
        if self._journaling is not None:
            await self._journaling.close(JOURNAL_END_S)
        self._poll.close()

    def _elsewhere(self) -> list[str]:
        """Return other addresses for clients; advertises this gateway as draining."""
        if self._meshing is None:
            return []
        self._meshing.drain()
        return elsewhere(self._service, self._meshing.fabric, self._meshing.region)

    def _adopt_early(self) -> None:
        early, self._early = self._early, []
        if self._meshing is not None:
            self._meshing.is_settled = True
        self.adopt(early)

    async def _parted(self) -> None:
        """Wait until every client has disconnected."""
        left = asyncio.Event()
        self._turn.on_left = left.set
        while self._has_clients():
            await left.wait()
            left.clear()

    def _has_clients(self) -> bool:
        return bool(clients_of(self._service))

    def _last_words_s(self, within_s: float) -> float:
        """Return the part of a timeout that is reserved for flushing to other gateways."""
        is_linked = self._meshing is not None and self._meshing.links
        return min(LAST_WORDS_S, within_s / 4) if is_linked else 0.0

    @property
    def _fabric(self) -> "MeshNode | None":
        return None if self._meshing is None else self._meshing.fabric

    def _tick(self) -> None:
        self._service.now_ns = monotonic_ns()
        self._service.wall_ns = time_ns()

    def _sweep(self) -> None:
        self._timer = self._loop.call_later(SWEEP_S, self._sweep)
        self._tick()
        for peer in sweep(self._service):
            self._abort(peer)
        self._log_slow_readers()
        self._house.sweep()
        self._channel_desk.tick()
        self._lane_desk.tick()
        if self._command_desk is not None:
            self._command_desk.tick()
        self._turn.wake()

    def _log_slow_readers(self) -> None:
        """Log one line for all slow consumers disconnected since the last sweep."""
        service = self._service
        count, service.slow_count = service.slow_count, 0
        if count:
            others = f", and {count - 1} others" if count > 1 else ""
            _log.warning("slow consumer disconnected: %s%s", service.slow_example, others)

    def _abort(self, peer: Peer) -> None:
        if peer.door is not None:
            peer.door.abort()
