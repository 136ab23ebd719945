"""Cache of routes by subject, invalidated exactly when a subscription affects them.

Bounded in routes, in trie nodes and in receivers: two generations, of which the older is dropped
as a whole. A route that leaves the cache is marked stale, so that its users notice without a
look-up. Cached subjects are in a trie, so a new pattern costs in proportion to its matches, not to
the size of the cache.
"""

from weft.broker.routing.route import Route
from weft.wire.subjects import elements, is_reserved

# With subjects of usual length, the limit of routes is reached before that of nodes.
_NODES_PER_ROUTE = 8
# Receivers in all cached routes of a service, about 9 bytes each: otherwise many subjects with
# many subscribers would take memory for each combination.
RECEIVERS_MAX = 4 << 20


class CacheNode:
    """Node in the trie of cached subjects, by which a pattern finds its matches."""

    def __init__(self) -> None:
        self.children: dict[bytes, CacheNode] | None = None
        self.route: Route | None = None


class Generation:
    """Routes that were cached in one period of time."""

    def __init__(self) -> None:
        self.nodes: dict[bytes, CacheNode] = {}
        self.made = 0
        self.receivers = 0
        self._root = CacheNode()

    def add(self, route: Route) -> None:
        """Cache a route."""
        node = self._root
        for element in elements(route.subject):
            if node.children is None:
                node.children = {}
            child = node.children.get(element)
            if child is None:
                child = CacheNode()
                node.children[element] = child
                self.made += 1
            node = child
        node.route = route
        self.nodes[route.subject] = node
        self.receivers += route.receivers()

    def take(self, subject: bytes) -> Route | None:
        """Remove and return the route of a subject, if it is cached."""
        node = self.nodes.pop(subject, None)
        if node is None:
            return None
        route = node.route
        node.route = None
        return route

    def forget(self, pattern: bytes) -> None:
        """Invalidate every route whose subject the pattern matches."""
        found: list[Route] = []
        _find_cached(self._root, elements(pattern), 0, found)
        for route in found:
            route.is_stale = True
            self.take(route.subject)

    def forget_all(self) -> None:
        """Invalidate every route."""
        found: list[Route] = []
        _find_all_cached(self._root, found)
        for route in found:
            route.is_stale = True


class RouteCache:
    """Routes of the subjects used most recently."""

    def __init__(self, limit: int, receivers_max: int = RECEIVERS_MAX) -> None:
        self._half = max(1, limit // 2)
        self._half_receivers = receivers_max // 2
        self._young = Generation()
        self._old = Generation()

    def __len__(self) -> int:
        return len(self._young.nodes) + len(self._old.nodes)

    def get(self, subject: bytes) -> Route | None:
        """The cached route of a subject, or None."""
        node = self._young.nodes.get(subject)
        if node is not None:
            return node.route
        route = self._old.take(subject)
        if route is not None:
            self.add(route)
        return route

    def add(self, route: Route) -> None:
        """Cache a route; drop the older generation if the younger is full."""
        young = self._young
        if (
            len(young.nodes) >= self._half
            or young.made >= self._half * _NODES_PER_ROUTE
            or young.receivers >= self._half_receivers
        ):
            # Marked stale, because they are no longer invalidated after changes.
            self._old.forget_all()
            self._old = young
            self._young = Generation()
        self._young.add(route)

    def forget(self, pattern: bytes) -> None:
        """Invalidate every route whose subject the pattern matches."""
        self._young.forget(pattern)
        self._old.forget(pattern)


def _find_cached(node: CacheNode, parts: list[bytes], at: int, found: list[Route]) -> None:
    if at == len(parts):
        if node.route is not None:
            found.append(node.route)
        return
    if node.children is None:
        return
    element = parts[at]
    if element not in (b"*", b">"):
        child = node.children.get(element)
        if child is not None:
            _find_cached(child, parts, at + 1, found)
        return
    for name, child in node.children.items():
        if at == 0 and is_reserved(name):
            continue
        if element == b"*":
            _find_cached(child, parts, at + 1, found)
        else:
            _find_all_cached(child, found)


def _find_all_cached(node: CacheNode, found: list[Route]) -> None:
    if node.route is not None:
        found.append(node.route)
    if node.children is not None:
        for child in node.children.values():
            _find_all_cached(child, found)
