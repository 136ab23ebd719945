"""Race in which gateways open channels of the same names under faults.

Clock rates are off by up to ten percent, gateways pause for twice the duration of a lease, networks
split, and gateways are killed and restart with their stored leases.
"""

import traceback
from collections.abc import Iterator, Sequence
from random import Random

from weft.mesh.settings import Rules
from weft.simulation.channel_races.history import (
    DISAGREED,
    TWO_CERTAIN,
    RaceHistory,
    RaceOutcome,
    judge,
)
from weft.simulation.channel_races.participants import RaceMember
from weft.simulation.clock import MS, SECOND
from weft.simulation.faults import FAULTS, Breaking
from weft.simulation.gateway import Hands, SimGateway
from weft.simulation.process_pool import process_pool
from weft.simulation.world import World

NAMES = ("room", "hall")
CRASHED = "crashed"

_FAULTS = ("partition", "partition", "three-way", "one-way", "pause", "kill", "power", "slow")

_BEGIN_NS = 2 * SECOND
_CALM_NS = 17 * SECOND
# After the last fault: leases expire, gateways reconnect, and the losers of conflicts are notified.
_END_NS = 40 * SECOND
_LOOK_NS = 50 * MS
_DRIFT_PPM = 100_000
_CHUNK = 8


class Race:
    """One run."""

    def __init__(
        self, seed: int, trace: list[str] | None = None, *, is_by_name: bool = False
    ) -> None:
        self.seed = seed
        self.race = RaceHistory()
        self.is_by_name = is_by_name
        self._chance = Random(f"{seed}/race")
        self._world = World(f"{seed}/race", trace)
        self.clock = self._world.clock
        self.history = self._world.history
        self._members: list[RaceMember] = []
        self._password = 0
        chance = self._chance
        nodes = chance.choice((3, 3, 3, 4, 5))
        first = ("10.0.0.1:7411", "10.0.0.2:7411")
        for _ in range(nodes):
            gateway = self._world.add(Rules(join=first))
            drift_ppm = chance.randrange(-_DRIFT_PPM, _DRIFT_PPM + 1)
            gateway.hands = Hands(chance.randrange(-60, 60) * SECOND, drift_ppm)
            self.clock.after(chance.randrange(100 * MS), gateway.begin)

    def run(self) -> RaceOutcome:
        """Run to the end and return the result."""
        clock = self.clock
        clock.run(_BEGIN_NS)
        clock.after(0, self._open)
        clock.after(0, self._join)
        clock.after(0, self._talk)
        clock.after(_LOOK_NS, self._look)
        clock.after(self._chance.randrange(SECOND), self._break)
        clock.run(_END_NS)
        self._compare()
        return judge(self.seed, self.race)

    # Workload.

    def _open(self) -> None:
        """Open a channel at one or more gateways at once."""
        chance = self._chance
        up = self._awake()
        name = chance.choice(NAMES)
        for gateway in chance.sample(up, min(len(up), chance.choice((1, 2, 2, 3)))):
            member = self._newcomer(gateway, name, self._some_password())
            self.clock.after(chance.randrange(30 * MS), member.open)
        if self.clock.now_ns < _CALM_NS:
            self.clock.after(chance.randrange(SECOND, 5 * SECOND), self._open)

    def _some_password(self) -> str:
        if self._chance.randrange(4) == 0:
            return ""
        self._password += 1
        return f"password {self._password}"

    def _join(self) -> None:
        """Join with a known password, and leave now and then."""
        chance = self._chance
        self._members = [each for each in self._members if each.is_here]
        up = self._awake()
        if self._members and up:
            known = chance.choice(self._members)
            guest = self._newcomer(chance.choice(up), known.channel_name.decode(), known.password)
            self.clock.after(chance.randrange(MS, 300 * MS), guest.join)
        if len(self._members) > 8 or (self._members and chance.randrange(4) == 0):
            chance.choice(self._members).leave()
        if self.clock.now_ns < _CALM_NS:
            self.clock.after(chance.randrange(600 * MS), self._join)

    def _talk(self) -> None:
        for member in self._members:
            member.talk()
        if self.clock.now_ns < _END_NS - SECOND:
            self.clock.after(self._chance.randrange(100 * MS, 400 * MS), self._talk)

    def _newcomer(self, gateway: SimGateway, name: str, password: str) -> RaceMember:
        member = RaceMember(self, gateway, name, password)
        self._members.append(member)
        return member

    def _awake(self) -> list[SimGateway]:
        return [gateway for gateway in self._world.up if not gateway.is_stopped]

    # Faults.

    def _break(self) -> None:
        chance = self._chance
        kind = chance.choice(_FAULTS)
        for_ns = chance.randrange(200 * MS, 12 * SECOND if kind == "pause" else 9 * SECOND)
        FAULTS[kind].begin(Breaking(self._world, chance, for_ns, SimGateway.begin))
        if self.clock.now_ns < _CALM_NS:
            self.clock.after(chance.randrange(500 * MS, 4 * SECOND), self._break)

    # Checks.

    def _look(self) -> None:
        """Check that at most one channel of a name is confirmed by a quorum."""
        certain: dict[bytes, set[bytes]] = {}
        for gateway in self._awake():
            channels = gateway.channels
            # By the current time of this gateway.
            gateway.service.now_ns = gateway.now_ns
            for key in channels.admissions.ids():
                channel = channels.table.get(bytes.fromhex(key.decode()))
                if channel is None or not channel.record.is_protected:
                    continue
                if channels.holding.is_confirmed(channel.id):
                    certain.setdefault(channel.record.name, set()).add(channel.id)
        for name, found in certain.items():
            if len(found) > 1:
                self.race.certain.append(f"{name.decode()} at {self.clock.now_ns / SECOND:.2f} s")
                self._world.tell(f"{TWO_CERTAIN}: {name.decode()}")
        if self.clock.now_ns < _END_NS - SECOND:
            self.clock.after(_LOOK_NS, self._look)

    def _compare(self) -> None:
        """Check that in the end all gateways know the same channels, one per name."""
        views = {
            gateway.name: {
                channel.id: (channel.record.name, channel.members)
                for channel in gateway.channels.table.all()
            }
            for gateway in self._world.up
        }
        names = [name for view in views.values() for name, _ in view.values()]
        known = {channel for view in views.values() for channel in view}
        if any(view != next(iter(views.values())) for view in views.values()):
            self.race.disagreed.append(f"{DISAGREED}: {views}")
        elif len(known) > len(set(names)):
            self.race.disagreed.append(f"two channels of one name: {views}")


def run_race(seed: int) -> RaceOutcome:
    """Run one seed; a crash of the mesh is a result as well."""
    try:
        return Race(seed).run()
    except Exception:  # any crash is a finding, to be reported with its seed
        text = traceback.format_exc(limit=-3)
        return RaceOutcome(seed, violations={CRASHED: 1}, told=[text])


def run_races(seeds: Sequence[int], jobs: int) -> Iterator[RaceOutcome]:
    """Run in `jobs` processes; yield results as they are completed."""
    if jobs == 1:
        yield from map(run_race, seeds)
        return
    with process_pool(jobs) as pool:
        yield from pool.imap_unordered(run_race, seeds, _CHUNK)
