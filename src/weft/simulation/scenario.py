"""Run of one seed: gateways, their clients and the faults."""

from functools import partial
from random import Random

import msgspec

from weft.mesh.settings import Rules
from weft.simulation.checker import Verdict, check
from weft.simulation.clients import Client, Requester, Responder, SimSubscriber
from weft.simulation.clock import MS, SECOND
from weft.simulation.faults import FAULTS, Breaking, Fault
from weft.simulation.gateway import Hands, SimGateway
from weft.simulation.history import History
from weft.simulation.world import World

PATTERNS = ("data.>", "data.*.a", "data.2.*", "data.1.a", "data.*.*", "data.3.>")
GROUP = "group:workers"

_LOAD_NS = 1000 * MS
_FAULTS_NS = 1200 * MS
_LOAD_END_NS = 4 * SECOND
_STEP_NS = 150 * MS
# Longest wait after convergence for messages in flight.
_TAIL_NS = 9 * SECOND


class ScenarioOptions(msgspec.Struct, frozen=True):
    """Parameters of runs; `nodes` 0: chosen by the seed."""

    nodes: int = 0
    faults: tuple[str, ...] = tuple(FAULTS)


class RunOutcome(msgspec.Struct):
    """Result of a run."""

    seed: int
    verdict: Verdict
    faults: tuple[str, ...]
    nodes: int
    virtual_ns: int


class Scenario:
    """One run."""

    def __init__(self, seed: int, manner: ScenarioOptions, trace: list[str] | None = None) -> None:
        self.seed = seed
        self.chance = Random(f"{seed}/scenario")
        self.world = World(str(seed), trace)
        self.faults: list[str] = []
        self._kinds = manner.faults
        self._publishers: list[Client] = []
        self._requesters: list[Requester] = []
        self._counters: dict[str, int] = {}
        self._calm_ns = 0
        self._patience_ns = 3 * SECOND
        chance = self.chance
        self.nodes = manner.nodes or chance.choice((3, 3, 3, 3, 4, 4, 5, 6))
        first = tuple(f"10.0.0.{place}:7411" for place in range(1, chance.randrange(2, 4)))
        max_links = chance.choice((2, 3, 8, 8))
        for _ in range(self.nodes):
            gateway = self.world.add(Rules(join=first, max_links=max_links))
            drift_ppm = chance.randrange(-500, 501)
            gateway.hands = Hands(chance.randrange(-3600, 3600) * SECOND, drift_ppm)
            self.world.clock.after(chance.randrange(300 * MS), partial(self.begin, gateway))

    @property
    def history(self) -> History:
        """Published and received messages."""
        return self.world.history

    def run(self) -> RunOutcome:
        """Run to the end and check the history."""
        world = self.world
        clock = world.clock
        clock.at(_LOAD_NS, self._publish)
        clock.at(_LOAD_NS, self._ask)
        clock.at(_LOAD_NS, self._come_and_go)
        self._plan()
        clock.at(self._calm_ns, lambda: world.begin_calm(self._patience_ns))
        clock.run(max(self._calm_ns, _LOAD_END_NS))
        while not world.is_converged and clock.now_ns < self._calm_ns + self._patience_ns:
            clock.run(clock.now_ns + _STEP_NS)
        end_ns = clock.now_ns + _TAIL_NS
        clock.run(clock.now_ns + 2 * _STEP_NS)
        while not world.is_quiet and clock.now_ns < end_ns:
            clock.run(clock.now_ns + _STEP_NS)
        verdict = check(self.history)
        return RunOutcome(self.seed, verdict, tuple(self.faults), self.nodes, clock.now_ns)

    def begin(self, gateway: SimGateway) -> None:
        """Start a gateway and connect clients to it."""
        gateway.begin()
        world, chance = self.world, self.chance
        world.settle_prober(gateway)
        self._publishers.append(Client(world, "p", gateway))
        SimSubscriber(world, "s", gateway, *chance.sample(PATTERNS, chance.randrange(1, 3)))
        if chance.randrange(2):
            SimSubscriber(world, "w", gateway, "work.>", GROUP)
        if chance.randrange(2):
            Responder(world, "r", gateway, "ask.it")
        if chance.randrange(2):
            self._requesters.append(Requester(world, "q", gateway))

    # Workload.

    def _publish(self) -> None:
        chance = self.chance
        self._publishers = [each for each in self._publishers if each.is_here]
        if self._publishers:
            publisher = chance.choice(self._publishers)
            first = chance.choice(("data", "data", "work"))
            subject = f"{first}.{chance.randrange(1, 4)}.{chance.choice('ab')}"
            publisher.publish(subject, self._next(publisher, chance.randrange(1, 9)))
        if self.world.clock.now_ns < _LOAD_END_NS:
            self.world.clock.after(chance.randrange(120 * MS), self._publish)

    def _ask(self) -> None:
        chance = self.chance
        self._requesters = [each for each in self._requesters if each.is_here]
        if self._requesters:
            requester = chance.choice(self._requesters)
            requester.ask("ask.it", self._next(requester, 1)[0])
        if self.world.clock.now_ns < _LOAD_END_NS:
            self.world.clock.after(chance.randrange(400 * MS), self._ask)

    def _come_and_go(self) -> None:
        """Connect a subscriber for a while."""
        chance = self.chance
        world = self.world
        up = [gateway for gateway in world.up if not gateway.is_stopped]
        if up:
            gateway = chance.choice(up)
            asked = [chance.choice(PATTERNS)] if chance.randrange(3) else ["work.>", GROUP]
            guest = SimSubscriber(world, f"v{world.clock.now_ns // MS}", gateway, *asked)
            world.clock.after(chance.randrange(2 * SECOND), guest.leave)
        if world.clock.now_ns < _LOAD_END_NS:
            world.clock.after(chance.randrange(2 * SECOND), self._come_and_go)

    def _next(self, client: Client, count: int) -> range:
        """Return the next counters of a client."""
        first = self._counters.get(client.name, 1)
        self._counters[client.name] = first + count
        return range(first, first + count)

    # Faults.

    def _plan(self) -> None:
        chance = self.chance
        kinds = self._kinds
        count = (chance.randrange(1, 5) if len(kinds) > 1 else 4) if kinds else 0
        self._calm_ns = _FAULTS_NS
        for _ in range(count):
            name = chance.choice(kinds)
            fault = FAULTS[name]
            self.faults.append(name)
            at_ns = _FAULTS_NS + chance.randrange(1800 * MS)
            for_ns = chance.randrange(fault.least_ns, fault.most_ns)
            self._calm_ns = max(self._calm_ns, at_ns + for_ns + MS)
            self._patience_ns = max(self._patience_ns, fault.patience_ns)
            self.world.clock.at(at_ns, partial(self._break, fault, for_ns))

    def _break(self, fault: Fault, for_ns: int) -> None:
        fault.begin(Breaking(self.world, self.chance, for_ns, self.begin))


def run(seed: int, manner: ScenarioOptions, trace: list[str] | None = None) -> RunOutcome:
    """Run one seed; the same arguments give the same result."""
    return Scenario(seed, manner, trace).run()
