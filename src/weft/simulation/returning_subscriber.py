"""Subscriber that returns faster than the interest of its gateway is propagated."""

from random import Random
from typing import Protocol

from weft.simulation.clients import Client, Scene, SimSubscriber
from weft.simulation.clock import MS
from weft.simulation.gateway import SimGateway

_SUBJECTS = ("data.1.a", "data.2.b")
_PATTERNS = ("data.*.*", "data.1.a", "data.2.*")
# Longest time between two publications.
_PUBLISH_NS = 8 * MS
# Longest stay, as a multiple of the longest absence.
_STAY = 4


class ReturningWorld(Scene, Protocol):
    """Context of the run."""


class Returning:
    """Publisher at one gateway, and at another a subscriber that repeatedly leaves and returns.

    Args:
        absence_ns: The longest time that the subscriber is away.
    """

    def __init__(
        self,
        world: ReturningWorld,
        chance: Random,
        publisher: Client,
        place: SimGateway,
        absence_ns: int,
    ) -> None:
        self._world = world
        self._chance = chance
        self._publisher = publisher
        self._place = place
        self._absence_ns = absence_ns
        self._patterns = chance.sample(_PATTERNS, chance.randrange(1, 3))
        self._counter = 0
        self._is_over = False

    def begin(self) -> None:
        """Start publishing and subscribing."""
        self._publish()
        self._come()

    def stop(self) -> None:
        """Stop publishing; the subscriber returns once more and stays."""
        self._is_over = True

    def _publish(self) -> None:
        chance = self._chance
        count = chance.randrange(1, 4)
        first = self._counter + 1
        self._counter += count
        self._publisher.publish(chance.choice(_SUBJECTS), range(first, first + count))
        if not self._is_over and self._publisher.is_here:
            self._world.clock.after(chance.randrange(_PUBLISH_NS), self._publish)

    def _come(self) -> None:
        if not self._place.is_up:
            return
        now_ns = self._world.clock.now_ns
        subscriber = SimSubscriber(self._world, f"b{now_ns}", self._place, *self._patterns)
        if self._is_over:
            return

        def go() -> None:
            subscriber.leave()
            self._world.clock.after(self._chance.randrange(self._absence_ns), self._come)

        self._world.clock.after(self._chance.randrange(_STAY * self._absence_ns), go)
