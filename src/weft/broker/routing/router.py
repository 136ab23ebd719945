"""Router: matches subjects with the subscriptions of a service, and caches routes.

Subscriptions can be listed by connection and by subject. A route is computed by the first message
to its subject and cached; see route_cache.py for its invalidation.
"""

from enum import IntEnum
from typing import NamedTuple

from weft.broker.delivery.outbox import Outbox
from weft.broker.delivery.policy import Policy
from weft.broker.journal.batcher import Journal
from weft.broker.routing.route import Route
from weft.broker.routing.route_cache import RouteCache
from weft.broker.routing.subscription_trie import Interest, Subscriber
from weft.errors import BadSubject, UsageError
from weft.wire.subjects import is_pattern, is_subject

CACHED_ROUTES_MAX = 4096
# Over the limit of any connection.
SUBSCRIPTIONS_MAX = 1 << 40

_CUT = int(Policy.CUT)
_DROP_OLD = int(Policy.DROP_OLD)
_POLICIES = len(Policy)


class ListedSubscription(NamedTuple):
    """Subscription as tools list it."""

    pattern: bytes
    group: bytes
    policy: Policy
    is_listener: bool = False


class MatchingSubscriber(NamedTuple):
    """Subscription that matches a subject, and the outbox of its subscriber."""

    outbox: Outbox
    subscription: ListedSubscription


class SubscriberKind(IntEnum):
    """Whether a pattern has subscribers, and whether one of them answers requests."""

    NOT = 0
    TO_LISTEN = 1
    TO_ANSWER = 2


class OutboxSubscriptions:
    """Subscriptions of one outbox."""

    def __init__(self) -> None:
        self.subscribers: list[Subscriber | None] = [None] * (2 * _POLICIES)
        self.plain: dict[bytes, Subscriber] = {}
        self.grouped: dict[tuple[bytes, bytes], Subscriber] = {}

    def subscriber(self, outbox: Outbox, policy: int, is_listener: bool) -> Subscriber:
        """The shared object for this outbox, policy and kind of subscriber."""
        position = policy + _POLICIES if is_listener else policy
        subscriber = self.subscribers[position]
        if subscriber is None:
            subscriber = Subscriber(outbox, policy, is_listener)
            self.subscribers[position] = subscriber
        return subscriber


class Router:
    """Subscriptions of one service, and the routes computed from them."""

    def __init__(self, cached_routes_max: int = CACHED_ROUTES_MAX) -> None:
        self._interest = Interest()
        self._cache = RouteCache(cached_routes_max)
        self._registry: dict[Outbox, OutboxSubscriptions] = {}
        self._count = 0
        # Set before the first call of route(), or never.
        self.journal: Journal | None = None
        # Local patterns that changed since the mesh last read them; None without a mesh.
        self.changes: dict[tuple[bytes, bytes], None] | None = None
        # Whether any subscription changed, local or remote, since this was last reset.
        self.is_changed = False

    def __len__(self) -> int:
        return self._count

    def subscribe(
        self,
        outbox: Outbox,
        pattern: bytes,
        group: bytes = b"",
        policy: int = _CUT,
        is_listener: bool = False,
    ) -> bool:
        """Add a subscription, or change its options; return False if nothing changes.

        Raises:
            BadSubject: invalid pattern.
            UsageError: unknown policy.
        """
        if not is_pattern(pattern):
            raise BadSubject(f"a pattern of {len(pattern)} bytes is not legal")
        if not 0 <= policy < _POLICIES:
            raise UsageError(f"there is no policy {policy}; the last is {_POLICIES - 1}")
        registered = self._registry.get(outbox)
        if registered is None:
            registered = OutboxSubscriptions()
            self._registry[outbox] = registered
        subscriber = registered.subscriber(outbox, policy, is_listener)
        present = _present(registered, pattern, group)
        if present is subscriber:
            return False
        if present is not None:
            self._interest.remove(pattern, group, present)
            self._count -= 1
        self._interest.add(pattern, group, subscriber)
        if group:
            registered.grouped[(pattern, group)] = subscriber
        else:
            registered.plain[pattern] = subscriber
        self._count += 1
        self._changed(outbox, pattern, group)
        return True

    def unsubscribe(self, outbox: Outbox, pattern: bytes, group: bytes = b"") -> bool:
        """Remove a subscription; return False if there is none."""
        registered = self._registry.get(outbox)
        present = None if registered is None else _present(registered, pattern, group)
        if registered is None or present is None:
            return False
        if group:
            del registered.grouped[(pattern, group)]
        else:
            del registered.plain[pattern]
        if not registered.plain and not registered.grouped:
            del self._registry[outbox]
        self._interest.remove(pattern, group, present)
        self._count -= 1
        self._changed(outbox, pattern, group)
        return True

    def leave(self, outbox: Outbox) -> int:
        """Remove all subscriptions of an outbox; return their number."""
        registered = self._registry.get(outbox)
        if registered is None:
            return 0
        count = self.count(outbox)
        for pattern in list(registered.plain):
            self.unsubscribe(outbox, pattern)
        for pattern, group in list(registered.grouped):
            self.unsubscribe(outbox, pattern, group)
        return count

    def has(self, outbox: Outbox, pattern: bytes, group: bytes = b"") -> bool:
        """Return whether an outbox has exactly this subscription."""
        registered = self._registry.get(outbox)
        return registered is not None and _present(registered, pattern, group) is not None

    def count(self, outbox: Outbox) -> int:
        """The number of subscriptions of an outbox."""
        registered = self._registry.get(outbox)
        return 0 if registered is None else len(registered.plain) + len(registered.grouped)

    def wanted_here(self, pattern: bytes, group: bytes = b"") -> SubscriberKind:
        """How local connections subscribe to exactly this pattern, plain or as group members."""
        wanted = SubscriberKind.NOT
        for subscriber in self._interest.subscribers(pattern, group):
            if not subscriber.outbox.is_distant:
                if not subscriber.is_listener:
                    return SubscriberKind.TO_ANSWER
                wanted = SubscriberKind.TO_LISTEN
        return wanted

    def listeners(
        self, subject: bytes, is_distant: bool, limit: int
    ) -> tuple[list[MatchingSubscriber], int]:
        """List the local or remote subscriptions that match a valid subject, up to a limit.

        The second value is the number of those left out.
        """
        found: list[MatchingSubscriber] = []
        more = 0
        for pattern, group, subscriber in self._subscribers(subject):
            if subscriber.outbox.is_distant != is_distant:
                continue
            if len(found) < limit:
                shown = _shown(pattern, group, subscriber)
                found.append(MatchingSubscriber(subscriber.outbox, shown))
            else:
                more += 1
        return found, more

    def _subscribers(self, subject: bytes) -> list[tuple[bytes, bytes, Subscriber]]:
        found: list[tuple[bytes, bytes, Subscriber]] = []
        for pattern, place in self._interest.matching(subject):
            if isinstance(place, Subscriber):
                found.append((pattern, b"", place))
                continue
            found += [(pattern, b"", subscriber) for subscriber in place.plain]
            for group, members in place.groups.items():
                found += [(pattern, group, subscriber) for subscriber in members.subscribers]
        return found

    def route(self, subject: bytes) -> Route | None:
        """The route of a subject; None if the subject is invalid."""
        route = self._cache.get(subject)
        if route is None and is_subject(subject):
            route = Route(subject, self._interest.match(subject))
            route.is_journaled = self.journal is not None and self.journal.wants(subject)
            self._cache.add(route)
        return route

    def tap(self, outbox: Outbox, pattern: bytes) -> None:
        """Subscribe this process itself to a valid pattern, without a connection."""
        self._interest.add(pattern, b"", Subscriber(outbox, _DROP_OLD, True))
        self._changed(outbox, pattern, b"")

    def _changed(self, outbox: Outbox, pattern: bytes, group: bytes) -> None:
        self._cache.forget(pattern)
        self.is_changed = True
        if self.changes is not None and not outbox.is_distant:
            self.changes[(pattern, group)] = None

    def subscriptions(
        self, outbox: Outbox, limit: int = SUBSCRIPTIONS_MAX
    ) -> list[ListedSubscription]:
        """The subscriptions of an outbox, up to a limit."""
        found: list[ListedSubscription] = []
        registered = self._registry.get(outbox)
        if registered is None:
            return found
        # Scan no more than are listed: the request may be repeated often.
        for pattern, subscriber in registered.plain.items():
            if len(found) >= limit:
                return found
            found.append(_shown(pattern, b"", subscriber))
        for (pattern, group), subscriber in registered.grouped.items():
            if len(found) >= limit:
                return found
            found.append(_shown(pattern, group, subscriber))
        return found


def _shown(pattern: bytes, group: bytes, subscriber: Subscriber) -> ListedSubscription:
    return ListedSubscription(pattern, group, Policy(subscriber.policy), subscriber.is_listener)


def _present(registered: OutboxSubscriptions, pattern: bytes, group: bytes) -> Subscriber | None:
    if group:
        return registered.grouped.get((pattern, group))
    return registered.plain.get(pattern)
