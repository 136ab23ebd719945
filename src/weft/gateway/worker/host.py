"""One service on the running loop: takes over connected sockets and runs its turns."""

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
from weft.gateway.mesh.membership import Membership
from weft.gateway.requests.channels import ChannelDesk
from weft.gateway.requests.lanes import LaneDesk
from weft.gateway.requests.mesh import MeshDesk
from weft.gateway.worker.drain import StalledClients, clients_of, end_client, say_goodbye
from weft.gateway.worker.http_routes import furnish
from weft.lanes.settings import LaneSettings
from weft.mesh.candidates import Candidate, candidates, elsewhere
from weft.transports.http.origins import WebRules
from weft.transports.http.server import House
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
    from weft.mesh.node import Fabric

_log = logging.getLogger(__name__)

SWEEP_S = 1.0
# How long the disk may take for what is left of the journal.
JOURNAL_END_S = 5.0
# How soon a journal that could not be begun is tried again.
JOURNAL_RETRY_S = 1.0
# What of a drain is kept for the last words to other gateways, at most.
LAST_WORDS_S = 2.0

_TOKEN_BYTES = 8
_SECRET_BYTES = 32


class Host:
    """A service, its journal if it has one, and the doors of its connections."""

    def __init__(
        self, service: str, gateway: str, limits: Limits, web: WebRules | None = None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        # A number of its own each time it starts: sequences begin anew.
        origin = secrets.randbits(32) or 1
        self._service = Service(service, gateway, origin, limits, os.urandom(_SECRET_BYTES))
        self._tick()
        self._started_ns = monotonic_ns()
        self._turn = Turn(self._service, self._loop)
        self._poll = Poll(self._turn, self._loop)
        self._house = House(self._turn, self._poll, web or WebRules())
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
        # Those who wait for the first link.
        self._early: list[Passed] = []
        self._timer = self._loop.call_later(SWEEP_S, self._sweep)

    @property
    def connections(self) -> int:
        """How many connections there are, greeted or not; links to other gateways are none."""
        links = 0 if self._meshing is None else self._meshing.links
        return len(self._service.peers) - links + self._house.connections + len(self._early)

    @property
    def is_needed(self) -> bool:
        """Return whether the service is of use without connections: linked, or with a journal."""
        if self._meshing is not None and self._meshing.links:
            return True
        return self._journaling is not None and self._journaling.status().position > 0

    def command(self, data: Path | None, wish: "Wish", mesh: MeshSettings) -> None:
        """Obey administrators from now on, and write that down; called before the keys are set.

        `wish` has the front do what a service cannot. Where packages are missing nobody is obeyed.
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
        """Keep what is promised about channels below a folder; called before it is linked."""
        self._channel_desk.remember(data)

    def keep(self, data: Path, settings: JournalSettings, wait_s: float = 0.0) -> None:
        """Keep a journal from now on; called before anybody comes.

        Blocks for up to `wait_s` while the process that wrote it before ends.

        Raises:
            BadOption: another gateway writes it, or a package for it is missing.
            OSError: it cannot be read, or its folder not be made.
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
            # As while it runs: live traffic goes on, and it is tried again.
            problem = error.strerror or str(error)
            _log.error("journal: it cannot be begun: %s", error)  # no traceback
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
        _log.warning("journal: it has begun, and is written from now on")

    def link(self, membership: Membership) -> None:
        """Be one of a mesh from now on; called before anybody comes, and after the keys were set.

        Where there are keys, only if other gateways can show that they belong to it.
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
        """Take over connected, non-blocking sockets of which nothing was read."""
        if self._meshing is not None and not self._meshing.is_settled:
            self._early += [passed for passed in batch if passed[1] != AS_LINK]
            batch = [passed for passed in batch if passed[1] == AS_LINK]
        self._tick()
        # One call for all of them: asking for each would cost as much as the rest of this.
        tokens = array("Q", os.urandom(_TOKEN_BYTES * len(batch)))
        for (fd, way), token in zip(batch, tokens, strict=True):
            try:
                if way == AS_HTTP:
                    self._house.adopt(fd)
                else:
                    peer = TcpDoor(self._turn, self._poll, fd).open(token)
                    # Behind TLS the host is all that is known.
                    peer.address = peer_address(fd) or host_of(fd)
            except OSError as error:
                os.close(fd)
                _log.error("a connection was lost: it cannot be watched: %s", error.strerror)

    def on_stranger(self, take: Callable[[int], None]) -> None:
        """Say who takes a connection whose next request is for another service."""
        self._house.on_stranger = take

    def stay(self, guest: int, *, looks: bool) -> None:
        """Let turns follow one another without the loop, which has little to read but this."""
        self._poll.stay(guest)
        self._poll.looks = looks

    def look(self, *, looks: bool) -> None:
        """Say whether to look for what comes next before resting."""
        self._poll.looks = looks

    def leave(self) -> None:
        """Return to the loop after each turn again."""
        self._poll.leave()

    def status(self) -> ServiceStatus:
        """The service in numbers."""
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
        """The gateways of the service that are known here, this one first."""
        self._tick()
        return candidates(self._service, self._fabric)

    def announce(self, event: str, message: Message) -> None:
        """Publish an event of the gateway."""
        self._tick()
        announce(self._service, event, message)
        self._turn.wake()

    def set_limits(self, limits: Limits) -> None:
        """Go by other limits from now on, but for the largest body."""
        self._service.set_limits(limits)

    def set_web(self, web: WebRules) -> None:
        """Go by other settings for pages and scripts from now on."""
        self._house.rules = web

    def set_lanes(self, lanes: LaneSettings) -> None:
        """Go by other settings for lanes from now on."""
        self._lane_desk.set(lanes)

    def set_mesh(self, mesh: MeshSettings) -> None:
        """Go by other settings for the mesh from now on, as far as they can change."""
        if self._meshing is not None:
            self._meshing.change(mesh)
        if self._command_desk is not None:
            self._command_desk.set_others(mesh.admins)

    def set_keys(self, keys: tuple[KeyRecord, ...] | None) -> None:
        """Let in whoever has one of these keys, and nobody else; None trusts everyone.

        Those who are here and may not be any more are told so and ended.
        """
        self._tick()
        self._service.set_keys(None if keys is None else Keyring(keys))
        if self._command_desk is not None:
            self._command_desk.set_keys(keys or ())
        if keys is not None and self._meshing is not None:
            self._meshing.heed_keys()
        self._turn.wake()

    async def drain(self, within_s: float, stall_s: float = DRAIN_STALL_S) -> None:
        """Ask everyone to go elsewhere, and wait for it; bounded in time.

        A client that makes no progress for `stall_s` is not waited for.
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
                # The last words to other gateways come after those of the clients.
                async with asyncio.timeout(within_s - self._last_words_s(within_s)):
                    await self._parted()
                    await self._house.emptied()
        finally:
            stalled.stop()
        if self._meshing is not None:
            await self._meshing.leave(max(0.0, within_s - (self._loop.time() - began)))

    async def close(self) -> None:
        """End what is left, at once."""
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
        """Return where else clients may go; other gateways learn that this one is closing down."""
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
        """Wait until every client has left."""
        left = asyncio.Event()
        self._turn.on_left = left.set
        while self._has_clients():
            await left.wait()
            left.clear()

    def _has_clients(self) -> bool:
        return bool(clients_of(self._service))

    def _last_words_s(self, within_s: float) -> float:
        """How much of a time is kept for other gateways to get what they have yet to get."""
        is_linked = self._meshing is not None and self._meshing.links
        return min(LAST_WORDS_S, within_s / 4) if is_linked else 0.0

    @property
    def _fabric(self) -> "Fabric | None":
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
        """One line for all readers that were cut since the last sweep."""
        service = self._service
        count, service.slow_count = service.slow_count, 0
        if count:
            others = f", and {count - 1} others" if count > 1 else ""
            _log.warning("slow consumer disconnected: %s%s", service.slow_example, others)

    def _abort(self, peer: Peer) -> None:
        if peer.door is not None:
            peer.door.abort()
