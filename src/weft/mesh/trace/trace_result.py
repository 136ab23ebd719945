"""Result of a trace: the forwarding plan and the answers of the gateways on it.

The tracing gateway knows the plan. Each gateway on it reports the trace; for a silent one the last
link that is known to have carried it is reported.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from weft.mesh.protocol import HEARD_MAX, MatchingSubscription, Step, Traced
from weft.mesh.trace.hop import NO_RELAY, NO_WAY, SHED, TOO_FAR, Sprout
from weft.mesh.trace.local_matches import LocalMatches

Facts = dict[str, Any]
Name = Callable[[int], str]

_MS = 1_000_000
_REASONS = {
    NO_WAY: "no path to it from {0}",
    NO_RELAY: "{0} does not relay",
    TOO_FAR: "hop limit reached at {0}",
    SHED: "the backlog of the link from {0} is full",
}


class TraceAnswer(NamedTuple):
    """Answer of a gateway, and the time from the start of the trace to its arrival."""

    traced: Traced
    took_ns: int


class Journey:
    """One trace; `wanted` are its destinations, `parents` the predecessors in the plan."""

    def __init__(self, own: int, subject: bytes, here: LocalMatches, since_ns: int) -> None:
        self.own = own
        self.subject = subject
        self.here = here
        self.since_ns = since_ns
        self.wanted = frozenset(here.gateways)
        self.parents: dict[int, int] = {}
        self.steps: list[Step] = []
        self.answers: dict[int, TraceAnswer] = {}
        # Gateways that cannot answer, with the reporting gateway and the reason.
        self.stopped: dict[int, tuple[int, str]] = {}

    def plan(self, sprouts: list[Sprout], step_of: Callable[[int], Step]) -> None:
        """Add the branches of the plan, sent or not."""
        for envelope, reason in sprouts:
            ancestors = [(self.own, len(envelope.entries))]
            for at, entry in enumerate(envelope.entries):
                while at >= ancestors[-1][1]:
                    ancestors.pop()
                self.parents[entry.number] = self.own if reason == NO_WAY else ancestors[-1][0]
                ancestors.append((entry.number, at + entry.below + 1))
                if reason:
                    self.steps.append(Step(entry.number, reason))
                    self.stopped[entry.number] = (self.own, reason)
            if not reason:
                self.steps.append(step_of(envelope.entries[0].number))

    def hear(self, number: int, traced: Traced, now_ns: int) -> None:
        """Handle the answer of a gateway."""
        if number not in self.parents or number in self.answers:
            return
        self.answers[number] = TraceAnswer(traced, now_ns - self.since_ns)
        self.stopped.pop(number, None)
        for step in traced.steps:
            if step.reason and step.number in self.parents and step.number not in self.answers:
                self.stopped[step.number] = (number, step.reason)

    @property
    def is_over(self) -> bool:
        """Whether no further answer can arrive."""
        return all(number in self.answers or number in self.stopped for number in self.parents)

    def facts(self, name: Name, limit: int) -> Facts:
        """Return the result as plain values: the tree in pre-order, this gateway first."""
        numbers = list(self._in_order())
        here = self.here
        return {
            "subject": self.subject.decode(),
            "gateway": name(self.own),
            "is_heard": self._is_heard(),
            "gateways": [self._gateway(number, name) for number in numbers[:limit]],
            "more": max(0, len(numbers) - limit),
            "groups": [
                {
                    "group": share.group,
                    "gateway": name(share.gateway),
                    "name": share.name or self._next_in(share.gateway, share.group),
                }
                for share in here.shares
            ],
            "responder": {
                "gateway": name(here.responds_at) if here.responds_at else "",
                "name": here.responder or self._responder_at(here.responds_at),
            },
        }

    def _is_heard(self) -> bool:
        """Return whether a subscriber is known."""
        answered = any(
            answer.traced.heard for number, answer in self.answers.items() if number in self.wanted
        )
        return bool(self.here.heard) or answered

    def _in_order(self) -> Iterator[int]:
        below: dict[int, list[int]] = {}
        for number in self.parents:
            below.setdefault(self._before(number), []).append(number)
        stack = [self.own]
        seen: set[int] = set()
        while stack:
            number = stack.pop()
            if number not in seen:
                seen.add(number)
                yield number
                stack.extend(reversed(below.get(number, [])))
        # Contradictory answers must not hide a gateway.
        yield from (number for number in self.parents if number not in seen)

    def _before(self, number: int) -> int:
        """Return the gateway from which the trace reached this one, or should have."""
        answer = self.answers.get(number)
        if answer is not None and answer.traced.path:
            last = answer.traced.path[-1]
            return last if last in self.parents or last == self.own else self.parents[number]
        return self.parents[number]

    def _by(self, number: int, name: Name) -> str:
        """Return the name of the last hop, which after a detour may not be in the plan."""
        if number == self.own:
            return ""
        answer = self.answers.get(number)
        path = () if answer is None else answer.traced.path
        return name(path[-1] if path else self.parents[number])

    def _gateway(self, number: int, name: Name) -> Facts:
        if number == self.own:
            facts = self._here()
        elif number in self.answers:
            facts = self._answered(number, name)
        elif number in self.stopped:
            by, reason = self.stopped[number]
            facts = _nothing("dropped")
            facts |= {"reason": reason, "text": _REASONS.get(reason, reason).format(name(by))}
        else:
            one, other = self._last_link(number)
            facts = _nothing("silent")
            facts["text"] = f"no answer; last sent from {name(one)} to {name(other)}"
        steps = self._steps(number)
        return {
            "number": number,
            "name": name(number),
            "by": self._by(number, name),
            "is_wanted": number == self.own or number in self.wanted,
            **facts,
            "onward": [
                {
                    "number": step.number,
                    "name": name(step.number),
                    "rtt_ms": step.rtt_ns / _MS,
                    "waiting_bytes": step.waiting_bytes,
                }
                for step in steps
                if not step.reason
            ],
            "drops": [
                {
                    "number": step.number,
                    "name": name(step.number),
                    "reason": step.reason,
                    "text": _REASONS.get(step.reason, step.reason).format(name(number)),
                }
                for step in steps
                if step.reason
            ],
        }

    def _here(self) -> Facts:
        return {
            **_nothing("here"),
            "subscriptions": [_subscription(heard) for heard in self.here.heard],
            "more": self.here.more,
            "is_kept": self.here.is_kept,
        }

    def _answered(self, number: int, name: Name) -> Facts:
        traced, took_ns = self.answers[number]
        return {
            **_nothing("answered"),
            "path": [name(hop) for hop in traced.path],
            "took_ms": took_ns / _MS,
            "subscriptions": [_subscription(heard) for heard in traced.heard[:HEARD_MAX]],
            "more": traced.more_heard,
            "is_kept": traced.is_kept,
        }

    def _steps(self, number: int) -> list[Step]:
        if number == self.own:
            return self.steps
        answer = self.answers.get(number)
        return [] if answer is None else list(answer.traced.steps)

    def _last_link(self, number: int) -> tuple[int, int]:
        """Return the last link towards a gateway that is known to have carried the trace."""
        while True:
            before = self.parents[number]
            if before == self.own or before in self.answers:
                return before, number
            number = before

    def _next_in(self, gateway: int, group: str) -> str:
        answer = self.answers.get(gateway)
        heard = () if answer is None else answer.traced.heard
        return next((each.name for each in heard if each.is_next and each.group == group), "")

    def _responder_at(self, gateway: int) -> str:
        answer = self.answers.get(gateway)
        return "" if answer is None else answer.traced.responder


def _nothing(state: str) -> Facts:
    return {
        "state": state,
        "path": [],
        "took_ms": 0.0,
        "subscriptions": [],
        "more": 0,
        "is_kept": False,
        "reason": "",
        "text": "",
    }


def _subscription(heard: MatchingSubscription) -> Facts:
    return {
        "connection": heard.connection,
        "name": heard.name,
        "pattern": heard.pattern,
        "group": heard.group,
        "policy": heard.policy,
        "listen_only": heard.is_listener,
        "is_behind": heard.is_behind,
        "is_next": heard.is_next,
    }
