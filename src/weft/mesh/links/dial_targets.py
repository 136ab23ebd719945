"""Dial targets: addresses, and when each may be dialled next.

An unreachable address is retried indefinitely, with pauses that grow to two seconds and are
randomized so that gateways do not retry in step.
"""

from collections.abc import Iterator
from typing import Protocol

FIRST_PAUSE_NS = 200_000_000
LONGEST_PAUSE_NS = 2_000_000_000
# How long an address that another gateway offered is tried.
OFFER_NS = 60_000_000_000
TARGETS_MAX = 512
DIALS_MAX = 8
# Forgotten gateways are tried rarely for an hour, in case of a long partition.
REMEMBER_NS = 3_600_000_000_000
REMEMBERED_PAUSE_NS = 30_000_000_000


class RandomSource(Protocol):
    """Source of randomness, such as random.Random."""

    def random(self) -> float:
        """Return a number from 0 to less than 1."""

    def randbytes(self, n: int, /) -> bytes:
        """Return n bytes."""

    def randrange(self, stop: int, /) -> int:
        """Return a number from 0 to less than `stop`."""


class DialTarget:
    """One address; `node` is the gateway that was last reached there."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.node = b""
        self.is_fixed = False
        self.is_registry = False
        # The address led to this gateway itself.
        self.is_self = False
        self.is_dialling = False
        self.until_ns = 0
        self.next_ns = 0
        self.pause_ns = 0
        self.longest_ns = LONGEST_PAUSE_NS
        # Why the last attempt failed.
        self.problem = ""


class Targets:
    """All known addresses."""

    def __init__(self, chance: RandomSource) -> None:
        self._chance = chance
        self._targets: dict[str, DialTarget] = {}

    def __iter__(self) -> Iterator[DialTarget]:
        return iter(self._targets.values())

    def fix(self, address: str, *, is_registry: bool = False) -> None:
        """Add a configured address, which never expires."""
        target = self.at(address)
        target.is_fixed = True
        target.is_registry = is_registry

    def offer(self, address: str, now_ns: int) -> DialTarget:
        """Add or prolong an address that another gateway offered."""
        target = self.at(address)
        target.until_ns = max(target.until_ns, now_ns + OFFER_NS)
        return target

    def remember(self, address: str, now_ns: int) -> None:
        """Keep the address of a forgotten gateway, to be tried rarely."""
        target = self.at(address)
        target.until_ns = now_ns + REMEMBER_NS
        if not target.is_fixed:
            target.longest_ns = REMEMBERED_PAUSE_NS

    def at(self, address: str) -> DialTarget:
        """Return the target for an address, adding it if necessary."""
        target = self._targets.get(address)
        if target is None:
            if len(self._targets) >= TARGETS_MAX:
                self._make_room()
            target = DialTarget(address)
            self._targets[address] = target
        return target

    @property
    def dialling(self) -> int:
        """Number of dials in progress."""
        return sum(target.is_dialling for target in self._targets.values())

    def is_due(self, target: DialTarget, now_ns: int) -> bool:
        """Return whether an address may be dialled now."""
        return not target.is_dialling and now_ns >= target.next_ns

    def dialled(self, target: DialTarget) -> None:
        """Mark a dial as in progress."""
        target.is_dialling = True

    def reached(self, target: DialTarget, node: bytes) -> None:
        """Record the gateway at an address; it may still refuse the link."""
        target.node = node
        target.is_dialling = target.is_self = False

    def settled(self, target: DialTarget) -> None:
        """Reset the back-off of an address with a working link."""
        target.pause_ns = 0
        target.longest_ns = LONGEST_PAUSE_NS
        target.problem = ""

    def failed(self, target: DialTarget, problem: str, now_ns: int, least_ns: int = 0) -> None:
        """Record a failure and double the pause before the next attempt."""
        target.is_dialling = False
        target.problem = problem
        longer_ns = min(max(2 * target.pause_ns, FIRST_PAUSE_NS), target.longest_ns)
        target.pause_ns = longer_ns
        jittered_ns = int(longer_ns * (0.5 + self._chance.random() / 2))
        target.next_ns = max(target.next_ns, now_ns + max(jittered_ns, least_ns))

    def expire(self, now_ns: int) -> None:
        """Remove expired addresses."""
        for target in list(self._targets.values()):
            if not (target.is_fixed or target.is_dialling) and target.until_ns <= now_ns:
                del self._targets[target.address]

    def _make_room(self) -> None:
        idle = [each for each in self if not (each.is_fixed or each.is_dialling)]
        if idle:
            del self._targets[min(idle, key=lambda each: each.until_ns).address]


def is_address(text: str) -> bool:
    """Return whether a text is a host and a port."""
    host, _, port = text.rpartition(":")
    is_port = port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 1 << 16
    return is_port and bool(host) and host.isprintable() and " " not in host
