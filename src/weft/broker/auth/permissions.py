"""Permissions of a connection: five rights, each with allowed and denied patterns.

Deny wins, and the default is deny. A right covers a pattern if one allowed pattern covers all of it
and no denied one overlaps it; a subject is a pattern that matches only itself.
"""

from weft.errors import NotAllowed, shortened
from weft.wire.subjects import covers, is_literal, overlaps

PUBLISH = 0
SUBSCRIBE = 1
REQUEST = 2
SERVE = 3
REPLAY = 4

RIGHTS = ("publish", "subscribe", "request", "serve", "replay")
# Rights that a service can grant to clients while it runs.
ENABLED_RIGHTS = RIGHTS[:3]


class Rule:
    """One right of one key, as valid patterns; `is_all` allows everything that is not denied."""

    def __init__(self, is_all: bool, allow: tuple[bytes, ...], deny: tuple[bytes, ...]) -> None:
        self.is_all = is_all
        self.allow = allow
        self.deny = deny

    def denies(self, name: bytes) -> bool:
        """Return whether any of a valid subject or pattern is denied."""
        for pattern in self.deny:  # noqa: SIM110  # a generator could not be compiled here
            if overlaps(pattern, name):
                return True
        return False

    def grants(self, name: bytes) -> bool:
        """Return whether one allowed pattern covers all of a valid subject or pattern."""
        if self.is_all:
            return True
        for pattern in self.allow:  # noqa: SIM110  # a generator could not be compiled here
            if covers(pattern, name):
                return True
        return False


class Enabled:
    """Permissions that services granted to clients while they run: one set for each right.

    Each entry belongs to the connections that granted it, and ends with the last of them.
    """

    def __init__(self) -> None:
        self._holders: list[dict[bytes, set[int]]] = [{} for _ in ENABLED_RIGHTS]
        # Replaced, never modified: another thread may be iterating over it.
        self._wild: list[tuple[bytes, ...]] = [() for _ in ENABLED_RIGHTS]

    def grants(self, right: int, name: bytes) -> bool:
        """Return whether one granted pattern covers all of a valid subject or pattern."""
        if right >= len(self._holders):
            return False
        if name in self._holders[right]:
            return True
        for pattern in self._wild[right]:  # noqa: SIM110  # as above
            if covers(pattern, name):
                return True
        return False

    def hold(self, right: int, pattern: bytes, number: int) -> bool:
        """Add a connection to the owners of an entry; return whether the entry is new."""
        holders = self._holders[right].get(pattern)
        if holders is not None:
            holders.add(number)
            return False
        self._holders[right][pattern] = {number}
        if not is_literal(pattern):
            self._wild[right] = (*self._wild[right], pattern)
        return True

    def let_go(self, right: int, pattern: bytes, number: int) -> bool:
        """Remove a connection from the owners of an entry; return whether the entry ended."""
        holders = self._holders[right][pattern]
        holders.discard(number)
        if holders:
            return False
        del self._holders[right][pattern]
        if not is_literal(pattern):
            self._wild[right] = tuple([each for each in self._wild[right] if each != pattern])
        return True


class Rights:
    """Permissions of one peer: the rules of its key and, for a client, runtime grants."""

    def __init__(self, rules: tuple[Rule, ...], enabled: Enabled | None) -> None:
        self.rules = rules
        self._enabled = enabled

    def allows(self, right: int, name: bytes) -> bool:
        """Return whether a right covers all of a valid subject or pattern."""
        rule = self.rules[right]
        if rule.denies(name):
            return False
        if rule.grants(name):
            return True
        return self._enabled is not None and self._enabled.grants(right, name)

    def denies(self, right: int, name: bytes) -> bool:
        """Return whether a right is denied for any of a valid subject or pattern."""
        return self.rules[right].denies(name)

    def has(self, right: int) -> bool:
        """Return whether the key grants any of a right."""
        rule = self.rules[right]
        return rule.is_all or len(rule.allow) > 0


def may_not(deed: str, name: bytes) -> NotAllowed:
    """The error for a missing permission: names the operation, not the rule."""
    return NotAllowed(f"this connection may not {deed} {shortened(name.decode())}")
