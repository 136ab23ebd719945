"""Addresses that may be dialled, and when each may be dialled again.

Whoever cannot be reached is tried for ever, with pauses that grow to a few seconds and differ by
chance, so that not everybody comes at the same time.
"""

from collections.abc import Iterator
from typing import Protocol

FIRST_PAUSE_NS = 200_000_000
LONGEST_PAUSE_NS = 2_000_000_000
# What others have named is tried for so long, if nothing else is known of it.
OFFER_NS = 60_000_000_000
TARGETS_MAX = 512
DIALS_MAX = 8
# Gateways that were forgotten are tried for an hour, seldom: the mesh may have been split for long.
REMEMBER_NS = 3_600_000_000_000
REMEMBERED_PAUSE_NS = 30_000_000_000


class Chance(Protocol):
    """Whatever decides by chance: random.Random, or the system's."""

    def random(self) -> float:
        """A number from 0 to less than 1."""

    def randbytes(self, n: int, /) -> bytes:
        """So many bytes."""

    def randrange(self, stop: int, /) -> int:
        """A number from 0 to less than `stop`."""


class Target:
    """One address; `node` is whom it led to the last time."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.node = b""
        self.is_fixed = False
        self.is_registry = False
        # Whoever was there the last time was this gateway itself.
        self.is_self = False
        self.is_dialling = False
        self.until_ns = 0
        self.next_ns = 0
        self.pause_ns = 0
        self.longest_ns = LONGEST_PAUSE_NS
        # Why it could not be linked with the last time.
        self.problem = ""


class Targets:
    """All addresses that are known."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._targets: dict[str, Target] = {}

    def __iter__(self) -> Iterator[Target]:
        return iter(self._targets.values())

    def fix(self, address: str, *, is_registry: bool = False) -> None:
        """An address that was configured: it is never forgotten."""
        target = self.at(address)
        target.is_fixed = True
        target.is_registry = is_registry

    def offer(self, address: str, now_ns: int) -> Target:
        """Somebody named an address: it is worth trying for a while."""
        target = self.at(address)
        target.until_ns = max(target.until_ns, now_ns + OFFER_NS)
        return target

    def remember(self, address: str, now_ns: int) -> None:
        """Somebody was there who is forgotten now: it is worth trying now and then."""
        target = self.at(address)
        target.until_ns = now_ns + REMEMBER_NS
        if not target.is_fixed:
            target.longest_ns = REMEMBERED_PAUSE_NS

    def at(self, address: str) -> Target:
        """The target with an address."""
        target = self._targets.get(address)
        if target is None:
            if len(self._targets) >= TARGETS_MAX:
                self._make_room()
            target = Target(address)
            self._targets[address] = target
        return target

    @property
    def dialling(self) -> int:
        """How many are being dialled."""
        return sum(target.is_dialling for target in self._targets.values())

    def is_due(self, target: Target, now_ns: int) -> bool:
        """Say if it may be dialled now."""
        return not target.is_dialling and now_ns >= target.next_ns

    def dialled(self, target: Target) -> None:
        """It is being dialled."""
        target.is_dialling = True

    def reached(self, target: Target, node: bytes) -> None:
        """Whoever is there was met; it may still refuse to be linked with."""
        target.node = node
        target.is_dialling = target.is_self = False

    def settled(self, target: Target) -> None:
        """Whoever is there is linked with."""
        target.pause_ns = 0
        target.longest_ns = LONGEST_PAUSE_NS
        target.problem = ""

    def failed(self, target: Target, problem: str, now_ns: int, least_ns: int = 0) -> None:
        """It did not work: try again after a pause, a longer one each time."""
        target.is_dialling = False
        target.problem = problem
        longer_ns = min(max(2 * target.pause_ns, FIRST_PAUSE_NS), target.longest_ns)
        target.pause_ns = longer_ns
        jittered_ns = int(longer_ns * (0.5 + self._chance.random() / 2))
        target.next_ns = max(target.next_ns, now_ns + max(jittered_ns, least_ns))

    def expire(self, now_ns: int) -> None:
        """Forget what was offered long ago."""
        for target in list(self._targets.values()):
            if not (target.is_fixed or target.is_dialling) and target.until_ns <= now_ns:
                del self._targets[target.address]

    def _make_room(self) -> None:
        idle = [each for each in self if not (each.is_fixed or each.is_dialling)]
        if idle:
            del self._targets[min(idle, key=lambda each: each.until_ns).address]


def is_address(text: str) -> bool:
    """Say if something could be dialled: a host and a port."""
    host, _, port = text.rpartition(":")
    is_port = port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 1 << 16
    return is_port and bool(host) and host.isprintable() and " " not in host
