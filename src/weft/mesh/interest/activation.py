"""Activation of local subscriptions by the interest versions of other gateways.

When the last subscriber of a pattern leaves, other gateways stop sending. A new subscriber would
get frames that were sent before they knew of the departure, then a gap until they know of it. So
forwarding headers carry the interest version that the origin knew, and a subscription is served
from the version on since which its pattern has been advertised without interruption.
"""

from collections.abc import Iterable

from weft.broker.routing.route import Route
from weft.broker.routing.router import Router
from weft.mesh.protocol import InterestEntry
from weft.mesh.routing.forward_header import version_of

# Bound on cached routes to active subscribers.
ROUTES_MAX = 1024
_ALL = 1 << 40


class Activation:
    """Interest version since which each pattern without a group has been advertised."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._version = 0
        # The highest version in `_since`.
        self._newest = 0
        self._since: dict[bytes, int] = {}
        # By subject and version: the full route, and the route to active subscribers.
        self._routes: dict[tuple[bytes, int], tuple[Route, Route]] = {}

    def apply(self, changes: Iterable[tuple[InterestEntry, bool]], version: int) -> None:
        """Record that an interest version with these changes, in order, is advertised."""
        wanted: dict[bytes, bool] = {}
        for each, is_added in changes:
            if not each.group:
                wanted[each.pattern] = is_added or wanted.get(each.pattern, False)
        for pattern, is_wanted in wanted.items():
            if not is_wanted:
                self._since.pop(pattern, None)
            elif pattern not in self._since:
                self._since[pattern] = self._newest = version
        self._version = version
        self._routes.clear()

    def route(self, route: Route, mark: int) -> Route:
        """Return the route to the local subscribers that are active at this mark."""
        version = version_of(mark, self._version)
        if version >= self._newest and not self._router.changes:
            return route
        key = (route.subject, version)
        found = self._routes.get(key)
        if found is None or found[0] is not route:
            if len(self._routes) >= ROUTES_MAX:
                self._routes.clear()
            found = (route, self._active(route, version))
            self._routes[key] = found
        return found[1]

    def _active(self, route: Route, version: int) -> Route:
        active = Route(route.subject, [])
        policies: dict[object, int] = {}
        for outbox, subscription in self._router.listeners(route.subject, False, _ALL)[0]:
            since = self._since.get(subscription.pattern, _ALL)
            if not subscription.group and since <= version:
                if outbox not in policies:
                    active.outboxes.append(outbox)
                policies[outbox] = max(policies.get(outbox, 0), subscription.policy)
        active.policies.extend(policies[outbox] for outbox in active.outboxes)
        return active
