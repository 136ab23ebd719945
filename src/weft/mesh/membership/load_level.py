"""Load level of this gateway, coarse enough to advertise every change.

A connection weighs 1, as do ten messages or ten thousand bytes per second. Each level is twice the
last: level 0 is no load, level 1 a weight of 1, level 2 from 2, level 3 from 4.
"""

from weft.broker.service import Service

LOAD_MAX = 31
# Least interval between changes.
LOAD_NS = 5_000_000_000

_MESSAGES_PER_S = 10
_BYTES_PER_S = 10_000
# Hysteresis: a level falls only with a margin.
_MARGIN = 0.75


def weight_of(service: Service) -> float:
    """Return the current weight of the connections and messages of a service."""
    # Excludes links, authenticated or not.
    connections = sum([peer.carrier is None for peer in service.peers.values()])
    total = service.total
    messages: float = total.message_rate(service.now_ns)
    size: float = total.byte_rate(service.now_ns)
    return connections + messages / _MESSAGES_PER_S + size / _BYTES_PER_S


def step_of(weight: float) -> int:
    """Return the level of a weight."""
    return min(int(weight).bit_length(), LOAD_MAX)


class OwnLoad:
    """Load of one gateway; `step` is the advertised level."""

    def __init__(self) -> None:
        self.step = 0
        self._looked_ns = 0

    def look(self, service: Service) -> bool:
        """Recompute the level if due; return whether it changed."""
        now_ns = service.now_ns
        if self._looked_ns and now_ns - self._looked_ns < LOAD_NS:
            return False
        self._looked_ns = now_ns
        weight = weight_of(service)
        step = step_of(weight)
        if step < self.step:
            step = step_of(weight / _MARGIN)
        if step == self.step:
            return False
        self.step = step
        return True
