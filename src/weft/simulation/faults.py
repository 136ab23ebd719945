"""Faults of a simulated mesh: each begins, lasts for a time and is repaired."""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from weft.simulation.clients import Client
from weft.simulation.clock import MS, SECOND
from weft.simulation.gateway import Hands, SimGateway
from weft.simulation.returning_subscriber import Returning
from weft.simulation.wire import Pace
from weft.simulation.world import World

Begun = Callable[["Breaking"], None]


class Breaking:
    """Context of a fault: world, randomness and duration."""

    def __init__(
        self, world: World, chance: Random, for_ns: int, begin: Callable[[SimGateway], None]
    ):
        self.world = world
        self.chance = chance
        self.for_ns = for_ns
        # Restarts a gateway with its clients.
        self.begin = begin

    def later(self, act: Callable[[], None]) -> None:
        """Schedule the repair, at the end of the fault."""
        self.world.clock.after(self.for_ns, act)

    def gateway(self) -> SimGateway | None:
        """Return a random running gateway, unless it is the only one."""
        up = [each for each in self.world.up if not each.is_stopped]
        return self.chance.choice(up) if len(up) > 1 else None

    def pair(self) -> tuple[int, int]:
        """Return two machines, linked ones if there are any."""
        linked = [
            tuple(sorted(there.way))
            for there, back in self.world.network.connections
            if not (there.is_ended or back.is_ended)
        ]
        if linked:
            one, other = self.chance.choice(sorted(set(linked)))
            return one, other
        one, other = self.chance.sample(range(1, len(self.world.gateways) + 1), 2)
        return one, other

    def cut(self, ways: list[tuple[int, int]], text: str) -> None:
        """Block traffic in the given directions until the fault ends."""
        network = self.world.network
        self.world.tell(text)
        network.cut(ways)

        def mend() -> None:
            self.world.tell(f"repaired: {text}")
            network.mend(ways)

        self.later(mend)

    def split(self, count: int) -> None:
        """Split the machines into groups that cannot reach each other."""
        places = list(range(1, len(self.world.gateways) + 1))
        self.chance.shuffle(places)
        side = {place: at % count for at, place in enumerate(places)}
        ways = [(a, b) for a in places for b in places if side[a] != side[b]]
        groups = [sorted(p for p in places if side[p] == each) for each in range(count)]
        self.cut(ways, f"partition {' | '.join(map(str, groups))}")


class Fault(NamedTuple):
    """Kind of fault: function, least and greatest duration, and the time allowed to recover.

    A fault without a repair has a duration of zero.
    """

    begin: Begun
    least_ns: int
    most_ns: int
    patience_ns: int = 3 * SECOND


def _flap(breaking: Breaking) -> None:
    one, other = breaking.pair()
    breaking.world.tell(f"the link of {one} and {other} breaks")
    breaking.world.network.reset(one, other)


def _cut(breaking: Breaking) -> None:
    one, other = breaking.pair()
    breaking.cut([(one, other), (other, one)], f"silent cut of {one} and {other}")


def _one_way(breaking: Breaking) -> None:
    pair = breaking.pair()
    one, other = pair if breaking.chance.randrange(2) else pair[::-1]
    breaking.cut([(one, other)], f"silent cut from {one} to {other}")


def _partition(breaking: Breaking) -> None:
    breaking.split(2)


def _three_way(breaking: Breaking) -> None:
    breaking.split(min(3, len(breaking.world.gateways)))


def _pause(breaking: Breaking) -> None:
    gateway = breaking.gateway()
    if gateway is not None:
        gateway.stop()
        breaking.later(gateway.go_on)


def _kill(breaking: Breaking) -> None:
    _end(breaking, is_dark=False)


def _power(breaking: Breaking) -> None:
    _end(breaking, is_dark=True)


def _end(breaking: Breaking, *, is_dark: bool) -> None:
    gateway = breaking.gateway()
    if gateway is not None:
        gateway.kill(is_dark=is_dark)
        # A restarted gateway may have another wall-clock time.
        skew_ns = breaking.chance.randrange(-5 * SECOND, 5 * SECOND)
        gateway.hands = gateway.hands._replace(skew_ns=gateway.hands.skew_ns + skew_ns)
        breaking.later(lambda: None if gateway.is_up else breaking.begin(gateway))


def _leave(breaking: Breaking) -> None:
    gateway = breaking.gateway()
    if gateway is None:
        return
    breaking.world.tell(f"{gateway.name} leaves")
    # Clients are disconnected first, as when draining.
    gateway.dismiss()
    gateway.act(gateway.fabric.leave)
    lives = gateway.lives

    def come_back() -> None:
        if gateway.lives == lives:
            if gateway.is_up:
                gateway.kill()
            breaking.begin(gateway)

    breaking.later(come_back)


def _skew(breaking: Breaking) -> None:
    gateway = breaking.gateway()
    if gateway is not None:
        skew_ns = breaking.chance.randrange(-3600, 3600) * SECOND
        breaking.world.tell(f"the clock of {gateway.name} jumps by {skew_ns // SECOND} s")
        gateway.hands = Hands(skew_ns, gateway.hands.drift_ppm)


def _slow(breaking: Breaking) -> None:
    one, other = breaking.pair()
    network = breaking.world.network
    delay_ns = breaking.chance.randrange(20, 200) * MS
    pace = Pace(delay_ns, delay_ns, breaking.chance.randrange(10, 200) << 10)
    breaking.world.tell(f"{delay_ns // MS} ms between {one} and {other}")
    network.change_pace(one, other, pace)
    breaking.later(lambda: network.change_pace(one, other, network.pace))


def _return(breaking: Breaking) -> None:
    """Add a slow link, and a subscriber that returns faster than interest is propagated by it."""
    one, other = breaking.pair()
    world, chance = breaking.world, breaking.chance
    source, place = world.gateways[one - 1], world.gateways[other - 1]
    if not (source.is_up and place.is_up):
        return
    delay_ns = chance.randrange(5, 150) * MS
    pace = Pace(delay_ns, delay_ns // 4 + 1, chance.choice((40, 200, 10_000)) << 10)
    world.tell(f"a subscriber leaves and returns at {other}, {delay_ns // MS} ms from {one}")
    world.network.change_pace(one, other, pace)
    publisher = Client(world, f"b{world.clock.now_ns}", source)
    returning = Returning(world, chance, publisher, place, delay_ns)
    returning.begin()

    def mend() -> None:
        world.network.change_pace(one, other, world.network.pace)
        returning.stop()

    breaking.later(mend)


def _dials(breaking: Breaking) -> None:
    network = breaking.world.network
    network.refused_percent = network.late_percent = 40
    breaking.world.tell("connections are refused or slow")
    one, other = breaking.pair()
    network.reset(one, other)

    def mend() -> None:
        network.refused_percent = network.late_percent = 0

    breaking.later(mend)


_LONG = 10 * SECOND
FAULTS = {
    "flap": Fault(_flap, 0, 1),
    "cut": Fault(_cut, 100 * MS, 3 * SECOND, _LONG),
    "one-way": Fault(_one_way, 100 * MS, 3 * SECOND, _LONG),
    "partition": Fault(_partition, 100 * MS, 3 * SECOND, _LONG),
    "three-way": Fault(_three_way, 100 * MS, 3 * SECOND, _LONG),
    "pause": Fault(_pause, 50 * MS, 3 * SECOND),
    "kill": Fault(_kill, 20 * MS, 2 * SECOND),
    "power": Fault(_power, 20 * MS, 3 * SECOND),
    "leave": Fault(_leave, 2100 * MS, 3 * SECOND),
    "skew": Fault(_skew, 0, 1),
    "slow": Fault(_slow, 500 * MS, 3 * SECOND),
    "return": Fault(_return, 500 * MS, 3 * SECOND, _LONG),
    "dials": Fault(_dials, 500 * MS, 3 * SECOND),
}
