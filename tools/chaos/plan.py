"""When what is broken, and for how long: a plan that a seed gives, whatever comes of it."""

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# Links are cut and refused, both ways stop, one way stops, all links of a gateway are gone, its
# worker stands still, all of its processes are killed.
FLAP = "flap"
STALL = "stall"
ONE_WAY = "one way"
ISOLATE = "isolate"
PAUSE = "pause"
KILL = "kill"
KINDS = (FLAP, STALL, ONE_WAY, ISOLATE, PAUSE, KILL)
# Of links between two gateways; all others are of one.
OF_PAIRS = (FLAP, STALL, ONE_WAY)

# How often each kind is, beside the others.
_WEIGHTS = {FLAP: 5, STALL: 3, ONE_WAY: 2, ISOLATE: 2, PAUSE: 2, KILL: 3}
# How long each lasts: shorter and longer than it takes to find out that somebody is silent.
_LASTS_S = {
    FLAP: (0.0, 3.0),
    STALL: (0.3, 5.0),
    ONE_WAY: (0.3, 5.0),
    ISOLATE: (0.3, 5.0),
    PAUSE: (0.2, 4.0),
    KILL: (0.0, 2.0),
}
# From the begin of one to the begin of the next.
_PAUSE_S = (0.5, 3.0)
# A gateway that was killed has to come back before something else happens to it.
_AFTER_S = 2.0


class Fault(NamedTuple):
    """What happens to one gateway, or to the links between it and another, and when."""

    kind: str
    begins_s: float
    lasts_s: float
    gateway: int
    other: int = -1

    @property
    def gateways(self) -> tuple[int, ...]:
        """All that it is about."""
        return (self.gateway,) if self.other < 0 else (self.gateway, self.other)

    @property
    def ends_s(self) -> float:
        """When it is over."""
        return self.begins_s + self.lasts_s

    def __str__(self) -> str:
        return f"{self.kind} of {' and '.join(map(str, self.gateways))} for {self.lasts_s:.1f} s"


def planned(
    chance: random.Random, gateways: int, seconds: float, kinds: Sequence[str] = KINDS
) -> list[Fault]:
    """What happens in so many seconds: each kind once first if there is time, then by chance.

    Faults may overlap, but not two about the same gateway. All are over when the time is.
    """
    faults: list[Fault] = []
    at_s = chance.uniform(*_PAUSE_S)
    order = _in_turn(chance, kinds)
    kind = next(order)
    while at_s < seconds:
        fault = _fault(chance, kind, at_s, _idle(faults, gateways, at_s))
        # What finds nobody that it could happen to waits until there is somebody.
        if fault is not None:
            kind = next(order)
            if fault.ends_s < seconds:
                faults.append(fault)
        at_s += chance.uniform(*_PAUSE_S)
    return faults


def _in_turn(chance: random.Random, kinds: Sequence[str]) -> Iterator[str]:
    yield from chance.sample(kinds, len(kinds))
    while True:
        yield chance.choices(kinds, [_WEIGHTS[kind] for kind in kinds])[0]


def _idle(faults: list[Fault], gateways: int, at_s: float) -> list[int]:
    """Those to whom nothing happens at a time, nor did a moment before."""
    busy = {each for fault in faults if fault.ends_s + _AFTER_S > at_s for each in fault.gateways}
    return [each for each in range(gateways) if each not in busy]


def _fault(chance: random.Random, kind: str, at_s: float, idle: list[int]) -> Fault | None:
    lasts_s = chance.uniform(*_LASTS_S[kind])
    if kind in OF_PAIRS:
        if len(idle) < 2:
            return None
        one, other = chance.sample(idle, 2)
        return Fault(kind, at_s, lasts_s, one, other)
    return Fault(kind, at_s, lasts_s, chance.choice(idle)) if idle else None
