"""One run: who is there, what they do, what breaks, and what came of it."""

import random
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

from tools.lane_runs.checker import Verdict, judge
from tools.lane_runs.clients import Client, Hears, Plan, Publishes
from tools.lane_runs.faults import Faults
from tools.lane_runs.hub import Hub
from tools.lane_runs.network import Network, Pace
from tools.lane_runs.world import Process, World

from weft.client.lanes import send_stream
from weft.client.lanes.lane import Lane
from weft.lanes.settings import LaneSettings

RELAYED = LaneSettings(enabled=False, ask=False)
SETTINGS = LaneSettings(messages_s=50, hold_s=0.1, retry_s=0.2, idle_s=1.0)
# What everybody needs to find its peace after the last fault: an end that nobody was told of is
# found within three seconds, and what waits for that takes as long again.
SETTLE_S = 15.0
END_S = 12.0
# Nothing more comes if nothing came for so long; and when it is waited for no longer.
SILENCE_S = 3.0
SILENCE_BY_S = 300.0
# What may become of a request although nothing breaks; those that run out of time, and those that
# hang, are looked at on their own.
ANSWERED = ("answered by a lane", "answered through the gateway")
FINE = {*ANSWERED, "NotKnown", "TimedOut", "open", "wrong"}
# The share of runs in which receivers unsubscribe and subscribe again.
RENEWED = 0.5
# A publisher that may have much under way is never stopped by its lane.
WINDOWS = (4 << 10, 32 << 10, 2 << 20)


@dataclass
class Result:
    """What came of a run."""

    seed: int
    verdict: Verdict
    published: int = 0
    promotions: int = 0
    demotions: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)
    # Requests ran out of time although nothing broke.
    is_late: bool = False
    failures: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """Say if nothing is wrong."""
        return self.verdict.is_right and not self.failures

    def wrong(self) -> list[str]:
        """Everything that is wrong, for people."""
        return self.verdict.faults() + self.failures


class Run:
    """Everything that a seed stands for."""

    def __init__(
        self, seed: int, *, is_traced: bool = False, settings: LaneSettings = SETTINGS
    ) -> None:
        self.seed = seed
        chance = self._chance = random.Random(seed)
        self.world = World(random.Random(chance.random()))
        if is_traced:
            self.world.trace = []
        delay_max_s = chance.choice((0.0005, 0.003, 0.02))
        window_bytes = chance.choice((4 << 10, 64 << 10, 512 << 10))
        self.network = Network(self.world, Pace(delay_max_s, window_bytes, chance.choice((0, 0.3))))
        self.hub = Hub(self._process("gateway", "127.0.0.1"), self.network, settings)
        self.faults = Faults(self.world, self.network, self.hub)
        self.publishers: list[Publishes] = []
        self.receivers: list[Hears] = []
        self._lasts_s = chance.uniform(3.0, 8.0)
        self._machines = chance.choice((0, 0, 2, 9))
        self._people()
        self.faults.clients = [*self.publishers, *self.receivers]
        self._is_calm = chance.random() < 0.1
        self.faults.plan(0 if self._is_calm else chance.randint(1, 6), self._lasts_s)
        # Drawn apart, so that calm runs are what they were.
        renewals = random.Random(f"renewals of {seed}")
        if not self._is_calm and renewals.random() < RENEWED:
            self.faults.plan_renewals(renewals, renewals.randint(1, 8), self._lasts_s)

    def result(self) -> Result:
        """Let it happen, and judge it."""
        window_bytes = send_stream.WINDOW_BYTES
        send_stream.WINDOW_BYTES = self._chance.choice(WINDOWS)
        try:
            self._happen()
        finally:
            send_stream.WINDOW_BYTES = window_bytes
        return self._judged()

    def _happen(self) -> None:
        self.hub.begin()
        for client in [*self.publishers, *self.receivers]:
            begins_at = self._chance.choice((0.0, self._chance.uniform(0, self._lasts_s / 2)))
            self.world.at(begins_at, partial(self._begin, client))
        self.world.run(self._lasts_s)
        for publisher in self.publishers:
            publisher.is_stopping = publisher.is_stopping or not publisher.is_over
        self.world.run(self._lasts_s + SETTLE_S)
        ending = [lane for client in self.faults.clients for lane in client.ending_lanes()]
        self._await_silence()
        self._find_stuck(ending)
        for receiver in self.receivers:
            receiver.finish()
        self.hub.end()
        self._end()

    def _begin(self, client: Client) -> None:
        if not client.is_over:
            client.process.begin(client.live())

    def _await_silence(self) -> None:
        """On a slow network much may still be under way."""
        before = -1
        while before != (heard := self._heard()) and self.world.now < SILENCE_BY_S:
            before = heard
            self.world.run(self.world.now + SILENCE_S)

    def _heard(self) -> int:
        episodes = [each for receiver in self.receivers for each in receiver.episodes]
        return sum(len(each.events) for each in episodes)

    def _end(self) -> None:
        """Leave nothing behind; what is said while everything is torn down does not count."""
        failures = list(self.world.failures)
        for process in self.world.processes:
            process.end()
        self.world.run(self.world.now + END_S)
        self.world.failures = failures

    def _judged(self) -> Result:
        episodes = [each for receiver in self.receivers for each in receiver.episodes]
        logs = [publisher.log for publisher in self.publishers]
        result = Result(self.seed, judge(logs, episodes))
        result.published = sum(len(log.published) for log in logs)
        result.promotions = self.hub.promotions
        result.demotions = sum(self.hub.demotions.values())
        result.faults = self.faults.counts
        result.failures = self.world.failures
        result.trace = self.world.trace or []
        for publisher in self.publishers:
            result.requests += publisher.requests
            result.failures += self._hanging(publisher)
            result.is_late |= self._is_calm and publisher.requests["TimedOut"] > 0
        result.failures += self._unsettled()
        return result

    def _hanging(self, publisher: Publishes) -> list[str]:
        if publisher.is_over:
            return []
        requests = publisher.requests
        wrong = [
            f"{requests[each]} requests {each}" for each in ("open", "wrong") if requests[each]
        ]
        refused = [each for each in requests if each not in FINE]
        if self._is_calm and refused:
            wrong.append(f"without a fault, requests end with {', '.join(refused)}")
        return [f"{publisher.process.name}: {each}" for each in wrong]

    def _unsettled(self) -> list[str]:
        return [
            f"{client.process.name} is not connected in the end"
            for client in self.faults.clients
            if not client.is_connected and not client.is_over and not client.is_stopping
        ]

    def _find_stuck(self, ending: list[Lane]) -> None:
        """Lanes that were ending seconds ago have come to their end."""
        for client in self.faults.clients:
            for lane in client.ending_lanes():
                if lane in ending:
                    told = f"{client.process.name} waits for the end of its lane with"
                    self.world.failures.append(f"{told} {lane.other.name} for ever")

    def _people(self) -> None:
        chance = self._chance
        subjects = ["hot.1", "hot.2"][: chance.randint(1, 2)]
        is_asked = chance.random() < 0.25
        for number in range(chance.randint(1, 3)):
            plan = Plan(number, chance.sample(subjects, chance.randint(1, len(subjects))), chance)
            plan.asks = is_asked
            process = self._process(f"p{number}", self._host())
            self.publishers.append(Publishes(process, self._own(), plan))
        for number in range(chance.randint(1, 4)):
            wanted = chance.sample(subjects, chance.randint(1, len(subjects)))
            heard = frozenset([*wanted, "rare"][: chance.randint(1, len(wanted) + 1)])
            receiver = Hears(self._process(f"r{number}", self._host()), self._own(), heard)
            receiver.answers = is_asked
            receiver.comes_and_goes = chance.random() < 0.3
            self.receivers.append(receiver)

    def _process(self, name: str, host: str) -> Process:
        process = Process(self.world, name, host)  # type: ignore[abstract]  # all that is asked for
        process.network = self.network if name != "gateway" else None
        return process

    def _own(self) -> random.Random:
        return random.Random(self._chance.random())

    def _host(self) -> str:
        """On one machine, on a few, or on many."""
        if not self._machines:
            return "127.0.0.1"
        return f"10.0.0.{self._chance.randint(1, self._machines)}"
