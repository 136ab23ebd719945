"""Request handler for the mesh of a service: its gateways, subscribers and traces.

For services and admins, not for clients. A gateway without a mesh answers as its only gateway.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from weft.broker.rate_limit import spend
from weft.broker.service import Peer, is_insider
from weft.broker.system_requests import LIMIT, LIMIT_MAX
from weft.errors import BadOption, NotAllowed, WeftError
from weft.gateway.requests.deferred import DeferredRequest, too_long
from weft.mesh.report import interest_facts, listener_facts, mesh_facts, namer
from weft.mesh.trace.local_matches import listening
from weft.mesh.trace.trace_result import Journey
from weft.transports.loop.turn import Turn
from weft.wire.message.message import Message

if TYPE_CHECKING:
    from weft.mesh.node import MeshNode

# A listed entry costs about as much as this many frames; an inspected one costs less.
_CREDIT_PER_ENTRY = 4
_LOOKS_PER_CREDIT = 16

Facts = dict[str, Any]
Answer = Callable[[DeferredRequest, Message, int], WeftError | None]


class MeshDesk:
    """Mesh requests of one service; `fabric` is set once there is a mesh."""

    def __init__(self, turn: Turn, fabric: "MeshNode | None" = None) -> None:
        self._turn = turn
        self._service = turn.service
        self.fabric = fabric
        answers: dict[str, Answer] = {
            "mesh": self._mesh,
            "listeners": self._listeners,
            "trace": self._trace,
        }
        for name, answer in answers.items():
            turn.service.desks[name] = partial(self._ask, name, answer)

    def _mesh(self, asked: DeferredRequest, request: Message, limit: int) -> WeftError | None:
        facts = mesh_facts(self._service, self.fabric, limit)
        if "interest" in request and request.get_bool("interest"):
            facts |= interest_facts(self._service, self.fabric, limit)
        return self._answer(asked, facts)

    def _listeners(self, asked: DeferredRequest, request: Message, limit: int) -> WeftError | None:
        subject = request.get_string("subject").encode()
        return self._answer(asked, listener_facts(self._service, self.fabric, subject, limit))

    def _trace(self, asked: DeferredRequest, request: Message, limit: int) -> WeftError | None:
        subject = request.get_string("subject").encode()
        if self.fabric is not None:
            done = partial(self._tell_journey, asked, limit)
            return self.fabric.tracing.begin(subject, asked.peer, done)
        service = self._service
        here = listening(service, subject, asked.peer)
        journey = Journey(service.stamp.origin, subject, here, service.now_ns)
        return self._answer(asked, journey.facts(namer(self._service, self.fabric), limit))

    def _tell_journey(self, asked: DeferredRequest, limit: int, journey: Journey) -> None:
        problem = self._answer(asked, journey.facts(namer(self._service, self.fabric), limit))
        if problem is not None:
            asked.refuse(self._turn, problem)

    def _answer(self, asked: DeferredRequest, facts: Facts) -> WeftError | None:
        message = Message.from_dict(facts)
        problem = too_long(message, self._service.run.body_limit)
        if problem is None:
            asked.answer(self._turn, message)
        return problem

    def _ask(
        self, name: str, answer: Answer, peer: Peer, reply: bytes, request: Message
    ) -> WeftError | None:
        if not is_insider(peer):
            return NotAllowed(f"a client may not ask for {name}")
        limit = request.get_int64("limit") if "limit" in request else LIMIT
        if not 1 <= limit <= LIMIT_MAX:
            raise BadOption(f"limit {limit} is not in 1 … {LIMIT_MAX}")
        looks = len(self._service.peers) + len(self._service.router)
        spend(peer, looks // _LOOKS_PER_CREDIT + _CREDIT_PER_ENTRY * limit)
        return answer(DeferredRequest(peer, reply, name), request, limit)
