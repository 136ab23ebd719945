"""From which version of this gateway's interest on each local subscription is served.

When the last subscriber of a pattern leaves, other gateways stop sending. Until they know that one
is back, messages that were sent before arrive, then nothing: a new subscriber would see a hole. So
envelopes carry the version of the destination's interest that their origin knew, and a subscription
is served only from the version on that its pattern has been part of without interruption.
"""

from collections.abc import Iterable

from weft.broker.routing.route import Route
from weft.broker.routing.router import Router
from weft.mesh.protocol import Wanted
from weft.mesh.routing.forward_header import version_of

# Routes to the active subscribers of a subject that are remembered.
ROUTES_MAX = 1024
_ALL = 1 << 40


class Activation:
    """The versions since which patterns without a group have been wanted here."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._version = 0
        # The latest of the versions below.
        self._newest = 0
        self._since: dict[bytes, int] = {}
        # By subject and version: the route that it was made from, and that to active subscribers.
        self._routes: dict[tuple[bytes, int], tuple[Route, Route]] = {}

    def apply(self, changes: Iterable[tuple[Wanted, bool]], version: int) -> None:
        """Record that others are told a version which includes these changes, in order."""
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
        """Return the route to those local subscribers that messages with this mark are for."""
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
