"""Request handler for the lanes of one service: `_WEFT.ask.lane.*` and `_WEFT.ask.routes`."""

from collections.abc import Callable
from functools import partial
from typing import Any

from weft.broker.rate_limit import spend
from weft.broker.service import Peer, is_insider
from weft.broker.system_requests import LIMIT, LIMIT_MAX
from weft.errors import BadOption, NotAllowed, WeftError
from weft.gateway.front.remote_address import host_of
from weft.gateway.requests.deferred import DeferredRequest, too_long
from weft.lanes.coordinator import LaneCoordinator
from weft.lanes.report import lane_counts, route_facts
from weft.lanes.settings import LaneSettings
from weft.transports.loop.turn import Turn
from weft.wire.message.message import Message

# A listed entry costs about as much as this many frames; an inspected one costs less.
_CREDIT_PER_ENTRY = 4
_LOOKS_PER_CREDIT = 16

Facts = dict[str, Any]
Answer = Callable[[Peer, Message], Facts]


class LaneDesk:
    """Lane requests of one service; ticks about once a second."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._service = turn.service
        self.lanes = LaneCoordinator(turn.service, _seen_from)
        turn.service.laning = self.lanes
        answers: dict[str, Answer] = {
            "lane.address": self._address,
            "lane.direct": self._direct,
            "routes": self._routes,
        }
        for name, answer in answers.items():
            turn.service.desks[name] = partial(self._ask, name, answer)

    def set(self, settings: LaneSettings) -> None:
        """Apply the settings that concern this service."""
        self.lanes.settings = settings.of(self._service.name)

    def tick(self) -> None:
        """Advance timers and promote or demote routes."""
        if not self.lanes.findings.is_begun:
            # Not before a mesh is linked, if there is one: other gateways are sent the subjects.
            self.lanes.findings.begin()
        self.lanes.tick()

    def counts(self) -> Facts:
        """Return the lane counters of the service status."""
        return lane_counts(self.lanes)

    def _address(self, peer: Peer, request: Message) -> Facts:
        return {"address": self.lanes.talk.claims.claim(peer, request.get_int64("port"))}

    def _direct(self, peer: Peer, request: Message) -> Facts:
        route = self.lanes.ask(peer, request.get_string("subject").encode())
        return {"state": str(route.state), "reason": route.reason}

    def _routes(self, peer: Peer, request: Message) -> Facts:
        if not is_insider(peer):
            raise NotAllowed("a client may not ask for routes")
        limit = request.get_int64("limit") if "limit" in request else LIMIT
        if not 1 <= limit <= LIMIT_MAX:
            raise BadOption(f"limit {limit} is not in 1 … {LIMIT_MAX}")
        looks = len(self._service.peers) + self._service.flow_count
        spend(peer, looks // _LOOKS_PER_CREDIT + _CREDIT_PER_ENTRY * limit)
        subject = request.get_string("subject").encode() if "subject" in request else None
        connection = request.get_int64("connection") if "connection" in request else None
        return route_facts(self.lanes, limit, subject, connection)

    def _ask(
        self, name: str, answer: Answer, peer: Peer, reply: bytes, request: Message
    ) -> WeftError | None:
        message = Message.from_dict(answer(peer, request))
        problem = too_long(message, self._service.run.body_limit)
        if problem is None:
            DeferredRequest(peer, reply, name).answer(self._turn, message)
        return problem


def _seen_from(peer: Peer) -> str:
    return host_of(peer.outbox.fd)
