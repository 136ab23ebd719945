"""Heartbeats of links: detection of silent gateways, and round-trip times."""

from weft.broker.replies import end_with
from weft.broker.service import Service
from weft.errors import Silent
from weft.mesh.links.link import Link
from weft.mesh.membership.members import Members
from weft.mesh.protocol import Ping

BEAT_NS = 400_000_000
# A gateway from which nothing arrived for this long is considered lost.
SILENT_NS = 2_000_000_000
# Limit for an unanswered ping while other data arrives: the answer may be queued behind a lot.
UNANSWERED_NS = 20_000_000_000
# After a pause of this gateway itself, the silence of others is not held against them.
STOOD_STILL_NS = 1_000_000_000

_S = 1_000_000_000


class Heartbeat:
    """Heartbeats of one gateway."""

    def __init__(self, service: Service, links: dict[int, Link], members: Members) -> None:
        self._service = service
        self._links = links
        self._members = members
        self._ticked_ns = 0
        self._beat_ns = 0
        self._token = 0

    def tick(self) -> None:
        """Send pings if due, and close silent links."""
        now_ns = self._service.now_ns
        if self._ticked_ns and now_ns - self._ticked_ns > STOOD_STILL_NS:
            for link in self._links.values():
                link.grace_ns = now_ns
        self._ticked_ns = now_ns
        if now_ns - self._beat_ns < BEAT_NS:
            return
        self._beat_ns = now_ns
        digest = self._members.digest() if self._links else 0
        for link in list(self._links.values()):
            self._beat(link, digest, now_ns)

    def hear(self, link: Link, token: int) -> None:
        """Handle a pong."""
        if token and token == link.token:
            link.answered(self._service.now_ns)

    def _beat(self, link: Link, digest: int, now_ns: int) -> None:
        if link.peer.is_over:
            return
        silent_ns = link.silent_ns(now_ns)
        if silent_ns > SILENT_NS or link.unanswered_ns(now_ns) > UNANSWERED_NS:
            late_ns = max(silent_ns, link.unanswered_ns(now_ns))
            text = f"gateway {link.peer.name} has not answered for {late_ns / _S:.1f} s"
            end_with(link.peer, Silent(text))
            return
        outbox = link.peer.outbox
        self._token += 1
        if not link.token:
            link.token = self._token
            link.pinged_ns = now_ns
        link.say(Ping(self._token, digest, outbox.cost() + outbox.pending))
