"""Part of one service in the mesh: drives its timers, dials links, and leaves gracefully."""

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable
from time import monotonic_ns, time_ns

from weft.broker.replies import end_with
from weft.broker.service import Peer
from weft.errors import BadOption, NotAdmitted
from weft.gateway.config.mesh_settings import MeshSettings, address_of, target_of
from weft.gateway.http.mesh_status import MeshStatus
from weft.gateway.mesh.authentication import admission_of
from weft.gateway.mesh.link_log import MeshLog
from weft.gateway.mesh.membership import MeshMembership
from weft.mesh.links.link import mesh_links
from weft.mesh.node import MeshNode
from weft.mesh.settings import Rules
from weft.transports.link_dialer import Caution, Dialler
from weft.transports.loop.poller import Poll
from weft.transports.loop.turn import Turn

_log = logging.getLogger(__name__)

# Interval between ticks; and without links and dial attempts.
TICK_S = 0.03
IDLE_TICK_S = 0.2
# Most time that the first clients wait for the first link, so that their messages reach it: a
# service may have been started for them, and is linked a moment later.
SETTLE_S = 2.0


class Meshing:
    """Mesh state of one service, on the running loop."""

    def __init__(self, turn: Turn, poll: Poll, membership: MeshMembership) -> None:
        self._turn = turn
        self._loop = asyncio.get_running_loop()
        self._membership = membership
        self._admission = admission_of(membership)
        self._tell_time()
        self.fabric = MeshNode(
            turn.service,
            self._admission,
            membership.address,
            rules_of(membership.mesh),
            random.SystemRandom(),
        )
        self._dialler = Dialler(turn, poll, self._dialled, self._failed)
        self._dialler.change(caution_of(membership.mesh))
        self._mesh_log = MeshLog()
        self._is_leaving = False
        self._gone = asyncio.Event()
        # Called once the first link is ready, or none is to be expected soon.
        self.on_settled: Callable[[], None] | None = None
        self._settles_at = self._loop.time() + SETTLE_S
        self.is_settled = not (membership.mesh.join or membership.mesh.registry)
        self._timer = self._loop.call_soon(self._tick)

    @property
    def region(self) -> str:
        """Configured region of this gateway."""
        return self._membership.mesh.region

    @property
    def links(self) -> int:
        """Number of connections that are links."""
        return len(self.fabric.links)

    def status(self) -> MeshStatus:
        """Return the mesh counters of this service."""
        counts = self.fabric.traffic.counts
        return MeshStatus(
            key=self._admission.identity.key.hex(),
            address=self._membership.address,
            nodes=len(self.fabric.members.there()),
            links=len([link for link in mesh_links(self.fabric.links) if link.is_ready]),
            sent=counts.sent,
            received=counts.received,
            passed_on=counts.passed_on,
            resent=counts.resent,
            shed=counts.shed,
            lost=counts.lost,
            gaps=counts.gaps,
            refused=dict(counts.refused),
            not_linked=dict(self.fabric.events.not_linked),
        )

    def change(self, mesh: MeshSettings) -> None:
        """Apply new addresses to join and dial options; other settings wait for a restart."""
        try:
            self._dialler.change(caution_of(mesh))
        except BadOption as error:
            # The front could read the file a moment ago.
            _log.error("dial options unchanged: %s", error)
        rules = rules_of(mesh)
        targets = self.fabric.dialling.targets
        for target in targets:
            target.is_fixed = False
        for address in rules.join:
            targets.fix(address)
        for address in rules.registries:
            targets.fix(address, is_registry=True)

    def heed_keys(self) -> None:
        """Leave the mesh after keys were added without a secret or roster to authenticate links."""
        if self._membership.mesh.is_guarded or self._is_leaving:
            return
        if self._membership.mesh.is_asked_for or self.fabric.links:
            _log.error(
                "leaving the mesh: there are keys now, and neither mesh.secret_file nor mesh.roster"
            )
        self._is_leaving = True
        service = self._turn.service
        service.on_link = None
        self.fabric.leave()
        for link in list(self.fabric.links.values()):
            end_with(link.peer, NotAdmitted("this gateway has keys now, and no secret for links"))
        self._turn.wake()

    def drain(self) -> None:
        """Advertise that new clients should not connect here; messages still flow."""
        self._tell_time()
        self.fabric.drain()

    async def leave(self, within_s: float) -> None:
        """Flush to other gateways and close the links, within the timeout."""
        self._is_leaving = True
        self._tell_time()
        self.fabric.leave()
        self._turn.wake()
        self._timer.cancel()
        self._tick()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._gone.wait()

    async def close(self) -> None:
        """Stop dialling and ticking."""
        self._timer.cancel()
        await self._dialler.close()

    def _tick(self) -> None:
        is_busy = self.fabric.links or self.fabric.dialling.targets.dialling
        self._timer = self._loop.call_later(TICK_S if is_busy else IDLE_TICK_S, self._tick)
        self._tell_time()
        for address in self.fabric.tick():
            self._dial(address)
        if self.fabric.is_gone:
            self._gone.set()
        if not self.is_settled and self._has_tried():
            self.is_settled = True
            if self.on_settled is not None:
                self.on_settled()
        self._mesh_log.look(self.fabric)
        self._turn.wake()

    def _has_tried(self) -> bool:
        """Return whether a link is ready, every configured address failed, or time is up."""
        if self._loop.time() >= self._settles_at or self._is_leaving:
            return True
        if any(link.is_ready for link in mesh_links(self.fabric.links)):
            return True
        own = self._membership.address
        fixed = [each for each in self.fabric.dialling.targets if each.is_fixed]
        return all(each.problem or each.address == own for each in fixed)

    def _dial(self, address: str) -> None:
        if self._is_leaving:
            self.fabric.unreachable(address, "this gateway is closing down")
            return
        try:
            target = target_of(address)
        except BadOption as error:
            # The address comes from another gateway, which may send anything.
            self.fabric.unreachable(address, str(error))
        else:
            self._dialler.dial(address, target)

    def _dialled(self, address: str, peer: Peer) -> None:
        peer.address = address
        self.fabric.dialled(address, peer)

    def _failed(self, address: str, why: str) -> None:
        self._tell_time()
        self.fabric.unreachable(address, why)

    def _tell_time(self) -> None:
        service = self._turn.service
        service.now_ns = monotonic_ns()
        service.wall_ns = time_ns()


def rules_of(mesh: MeshSettings) -> Rules:
    """Return the settings in the form that the mesh takes."""
    return Rules(
        join=tuple(address_of(target_of(address)) for address in mesh.join),
        registries=tuple(address_of(target_of(address)) for address in mesh.registry),
        max_links=mesh.max_links,
        is_relay=mesh.relay == "auto",
        region=mesh.region,
        forget_s=mesh.forget_s,
        outbox_bytes=mesh.outbox_bytes,
    )


def caution_of(mesh: MeshSettings) -> Caution:
    """Return the operator's requirements for dialled links."""
    return Caution(mesh.plain == "allowed", mesh.tls_ca)
