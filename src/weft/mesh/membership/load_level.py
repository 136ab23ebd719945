"""How busy this gateway is, in steps so coarse that telling all others of it costs next to nothing.

A connection weighs 1, and so do ten messages a second, and ten thousand bytes a second. A step is
twice the last: step 0 is nothing, step 1 a weight of 1, step 2 of 2 and more, step 3 of 4 and more.
"""

from weft.broker.service import Service

LOAD_MAX = 31
# A step is told at most so often.
LOAD_NS = 5_000_000_000

_MESSAGES_PER_S = 10
_BYTES_PER_S = 10_000
# One that lies between two steps must not be told again and again: down only with a margin.
_MARGIN = 0.75


def weight_of(service: Service) -> float:
    """What the connections and the messages of a service weigh at the moment."""
    # Other gateways are none, those that have yet to prove who they are included.
    connections = sum([peer.carrier is None for peer in service.peers.values()])
    total = service.total
    messages: float = total.message_rate(service.now_ns)
    size: float = total.byte_rate(service.now_ns)
    return connections + messages / _MESSAGES_PER_S + size / _BYTES_PER_S


def step_of(weight: float) -> int:
    """The step of a weight."""
    return min(int(weight).bit_length(), LOAD_MAX)


class OwnLoad:
    """The load of one gateway; `step` is what others are told."""

    def __init__(self) -> None:
        self.step = 0
        self._looked_ns = 0

    def look(self, service: Service) -> bool:
        """Weigh it, if that is due; whether the step is another one."""
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
