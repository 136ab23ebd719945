"""The other gateways as those parts see them that only have something to say to them."""

from collections.abc import Callable
from typing import NamedTuple

from weft.mesh.counters import TrafficCounts
from weft.mesh.membership.members import Members
from weft.mesh.protocol import RoutedWord


class Mesh(NamedTuple):
    """Who is there, what is counted, and how somebody is told a word; False if it cannot be."""

    members: Members
    counts: TrafficCounts
    say: Callable[[int, RoutedWord], bool]
