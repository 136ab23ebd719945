"""Memory for replay buffers of tunnels and Bayeux sessions, bounded per service.

Half of the total is first come, first served, up to the limit of each client and the share of its
key. The other half is divided evenly, so that every client has a minimum even when the first half
is full. The sum never exceeds the total.
"""

from weft.broker.auth.key_quota import KeyQuota
from weft.broker.limits import Limits
from weft.transports.http.origins import WebRules


class KeptMemory:
    """Bytes in use by all clients of a service, and by each holder of a key."""

    def __init__(self) -> None:
        self.used = 0
        self._shares = KeyQuota("bytes")

    def room(self, holder: str, each: int, rules: WebRules, limits: Limits) -> int:
        """Return how many bytes a client of a holder may keep at the moment, at most `each`."""
        free = rules.kept_total_bytes // 2
        # Below one share in total, no holder can exceed its own. Runs once per message.
        if self.used < free * limits.share:
            return each
        if self.used < free and self._shares.count(holder) < limits.share_of(free):
            return each
        return min(each, free // (rules.tunnels + rules.bayeux_sessions))

    def change(self, holder: str, size: int) -> None:
        """Add to the bytes in use by a client of a holder; a negative size releases bytes."""
        self.used += size
        self._shares.add(holder, size)


class Account:
    """Bytes that one client uses, counted for its holder."""

    def __init__(self, memory: KeptMemory, holder: str) -> None:
        self._memory = memory
        self._size = 0
        self.holder = holder

    def room(self, each: int, rules: WebRules, limits: Limits) -> int:
        """Return how many bytes the client may keep at the moment, at most `each`."""
        return self._memory.room(self.holder, each, rules, limits)

    def keep(self, size: int) -> None:
        """Set the number of bytes that the client uses."""
        if size != self._size:
            self._memory.change(self.holder, size - self._size)
            self._size = size
