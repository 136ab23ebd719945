"""Traces begun at this gateway, and its answers to the traces of others.

A trace takes the path and the limits of a message, but is not delivered. It ends when all gateways
on the path have answered, or after WAIT_NS.
"""

from collections.abc import Callable

from weft.broker.service import Peer, Service
from weft.errors import BadSubject, Overloaded, Reserved, WeftError
from weft.mesh.delivery.traffic import Traffic
from weft.mesh.links.link import Link, mesh_links
from weft.mesh.protocol import STEPS_MAX, Step, Trace, Traced
from weft.mesh.trace.hop import TracedHop
from weft.mesh.trace.local_matches import listening
from weft.mesh.trace.trace_result import Journey

WAIT_NS = 2_000_000_000
JOURNEYS_MAX = 64
# Bound on answered traces per second.
TRACES_PER_S = 100

_S = 1_000_000_000

Done = Callable[[Journey], None]


class Tracing:
    """Traces of one gateway."""

    def __init__(self, service: Service, traffic: Traffic, links: dict[int, Link]) -> None:
        self._service = service
        self._traffic = traffic
        self._links = links
        self._token = 0
        self._journeys: dict[int, tuple[Journey, Done]] = {}
        self._second = 0
        self._answered = 0

    def begin(self, subject: bytes, asker: Peer | None, done: Done) -> WeftError | None:
        """Trace a subject and call `done` at the end, maybe at once; return an error if refused.

        Raises:
            BadSubject: invalid subject.
            Reserved: subject of the system.
        """
        service = self._service
        journey = Journey(
            service.stamp.origin,
            subject,
            listening(service, subject, asker),
            service.now_ns,
        )
        if len(self._journeys) >= JOURNEYS_MAX:
            return Overloaded(f"{JOURNEYS_MAX} traces are in progress, which is the limit")
        self._token += 1
        sprouts = self._traffic.trace(journey.here.gateways, Trace(self._token, subject))
        journey.plan(sprouts, self._step)
        if journey.is_over:
            done(journey)
        else:
            self._journeys[self._token] = (journey, done)
        return None

    def tick(self) -> None:
        """End traces that have timed out."""
        if not self._journeys:
            return
        oldest_ns = self._service.now_ns - WAIT_NS
        for token, (journey, done) in list(self._journeys.items()):
            if journey.since_ns <= oldest_ns:
                del self._journeys[token]
                done(journey)

    def hear(self, origin: int, word: Trace, passage: TracedHop) -> None:
        """Answer a trace of another gateway."""
        if not self._is_in_time():
            self._traffic.counts.refuse("TooManyTraces", 1)
            return
        try:
            here = listening(self._service, word.subject)
        except (BadSubject, Reserved):
            self._traffic.counts.refuse("BadTrace", 1)
            return
        steps = [
            Step(onward.number, onward.reason) if onward.reason else self._step(onward.number)
            for onward in passage.onward
        ]
        traced = Traced(
            token=word.token,
            path=passage.path,
            heard=here.heard,
            more_heard=here.more,
            responder=here.responder,
            is_kept=here.is_kept and self._is_kept_from_afar(),
            steps=tuple(steps[:STEPS_MAX]),
            more_steps=max(0, len(steps) - STEPS_MAX),
        )
        self._traffic.send_word(origin, traced)

    def hear_traced(self, origin: int, word: Traced) -> None:
        """Handle an answer to a local trace."""
        known = self._journeys.get(word.token)
        if known is None:
            return
        journey, done = known
        journey.hear(origin, word, self._service.now_ns)
        if journey.is_over:
            del self._journeys[word.token]
            done(journey)

    def _step(self, number: int) -> Step:
        for link in mesh_links(self._links):
            if link.number == number:
                outbox = link.peer.outbox
                return Step(number, "", link.rtt_ns, outbox.cost() + outbox.pending)
        return Step(number)

    def _is_kept_from_afar(self) -> bool:
        journal = self._service.router.journal
        return journal is not None and journal.is_of_mesh

    def _is_in_time(self) -> bool:
        second = self._service.now_ns // _S
        if second != self._second:
            self._second = second
            self._answered = 0
        self._answered += 1
        return self._answered <= TRACES_PER_S
