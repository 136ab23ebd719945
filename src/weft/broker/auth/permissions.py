"""What a connection may do: five rights, each with what it allows and what it denies.

Deny wins, and what nobody granted is not allowed. A pattern is inside a right if one allowed
pattern covers all of it and no denied one overlaps it; a subject is a pattern that matches itself
alone.
"""

from weft.errors import NotAllowed, shortened
from weft.wire.subjects import covers, is_literal, overlaps

PUBLISH = 0
SUBSCRIBE = 1
REQUEST = 2
SERVE = 3
REPLAY = 4

RIGHTS = ("publish", "subscribe", "request", "serve", "replay")
# What a service can enable for clients while it runs.
ENABLED_RIGHTS = RIGHTS[:3]


class Rule:
    """One right of one key, as legal patterns; `is_all` allows whatever is not denied."""

    def __init__(self, is_all: bool, allow: tuple[bytes, ...], deny: tuple[bytes, ...]) -> None:
        self.is_all = is_all
        self.allow = allow
        self.deny = deny

    def denies(self, name: bytes) -> bool:
        """Say if any of a legal subject or pattern is denied."""
        for pattern in self.deny:  # noqa: SIM110  # a generator could not be compiled here
            if overlaps(pattern, name):
                return True
        return False

    def grants(self, name: bytes) -> bool:
        """Say if all of a legal subject or pattern lies inside one allowed pattern."""
        if self.is_all:
            return True
        for pattern in self.allow:  # noqa: SIM110  # a generator could not be compiled here
            if covers(pattern, name):
                return True
        return False


class Enabled:
    """What the services among the peers have enabled for clients: three sets, apart.

    Each entry is held by the connections that enabled it, and ends with the last of them.
    """

    def __init__(self) -> None:
        self._holders: list[dict[bytes, set[int]]] = [{} for _ in ENABLED_RIGHTS]
        # Replaced and never changed: a thread may be going through it.
        self._wild: list[tuple[bytes, ...]] = [() for _ in ENABLED_RIGHTS]

    def grants(self, right: int, name: bytes) -> bool:
        """Say if all of a legal subject or pattern lies inside one that is enabled."""
        if right >= len(self._holders):
            return False
        if name in self._holders[right]:
            return True
        for pattern in self._wild[right]:  # noqa: SIM110  # as above
            if covers(pattern, name):
                return True
        return False

    def hold(self, right: int, pattern: bytes, number: int) -> bool:
        """Let a connection hold an entry; say if there was none."""
        holders = self._holders[right].get(pattern)
        if holders is not None:
            holders.add(number)
            return False
        self._holders[right][pattern] = {number}
        if not is_literal(pattern):
            self._wild[right] = (*self._wild[right], pattern)
        return True

    def let_go(self, right: int, pattern: bytes, number: int) -> bool:
        """Let a connection hold an entry no more; say if that ends it."""
        holders = self._holders[right][pattern]
        holders.discard(number)
        if holders:
            return False
        del self._holders[right][pattern]
        if not is_literal(pattern):
            self._wild[right] = tuple([each for each in self._wild[right] if each != pattern])
        return True


class Rights:
    """What one peer may do: the rules of its key, and for a client what services enabled."""

    def __init__(self, rules: tuple[Rule, ...], enabled: Enabled | None) -> None:
        self.rules = rules
        self._enabled = enabled

    def allows(self, right: int, name: bytes) -> bool:
        """Say if a right covers all of a legal subject or pattern."""
        rule = self.rules[right]
        if rule.denies(name):
            return False
        if rule.grants(name):
            return True
        return self._enabled is not None and self._enabled.grants(right, name)

    def denies(self, right: int, name: bytes) -> bool:
        """Say if a right is denied for any of a legal subject or pattern."""
        return self.rules[right].denies(name)

    def has(self, right: int) -> bool:
        """Say if the key grants anything of a right."""
        rule = self.rules[right]
        return rule.is_all or len(rule.allow) > 0


def may_not(deed: str, name: bytes) -> NotAllowed:
    """The refusal of what a peer's rights do not cover: what it is, and not why."""
    return NotAllowed(f"this connection may not {deed} {shortened(name.decode())}")
