"""View of the mesh for components that only send control messages."""

from collections.abc import Callable
from typing import NamedTuple

from weft.mesh.counters import TrafficCounts
from weft.mesh.membership.members import Members
from weft.mesh.protocol import RoutedWord


class Mesh(NamedTuple):
    """Members, counters, and a function that sends a control message; False if unreachable."""

    members: Members
    counts: TrafficCounts
    say: Callable[[int, RoutedWord], bool]
