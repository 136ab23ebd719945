"""Index of subscriptions: literal subjects in a dict, patterns in a trie.

Adding, removing and matching take time in proportion to the length of the pattern or subject. A
subscription needs no object of its own: a place with one subscriber holds that subscriber, and only
a place with more holds an audience.
"""

from collections.abc import Collection

from weft.broker.delivery.outbox import Outbox
from weft.wire.subjects import elements, is_literal, is_reserved


class Subscriber:
    """One outbox under one policy; shared by all its subscriptions with that policy.

    With `is_listener` it is never chosen to answer a request.
    """

    def __init__(self, outbox: Outbox, policy: int, is_listener: bool) -> None:
        self.outbox = outbox
        self.policy = policy
        self.is_listener = is_listener


class GroupMembers:
    """Members of a queue group at one place, and the turn of the next.

    The turn is kept here and not in a route, because routes are cached per subject.
    """

    def __init__(self) -> None:
        # An ordered set: removing one of many from a dict is fast.
        self.subscribers: dict[Subscriber, None] = {}
        self.turn = 0


class Audience:
    """Several subscribers at one place: plain ones, and queue groups."""

    def __init__(self) -> None:
        self.plain: dict[Subscriber, None] = {}
        self.groups: dict[bytes, GroupMembers] = {}


Place = Subscriber | Audience


class TrieNode:
    """Node of the trie: subscribers of exactly this pattern, and of this followed by `>`."""

    def __init__(self) -> None:
        self.children: dict[bytes, TrieNode] | None = None
        self.star: TrieNode | None = None
        self.here: Place | None = None
        self.tail: Place | None = None

    def is_bare(self) -> bool:
        """Return whether neither this node nor any below it has subscribers."""
        return (
            self.here is None and self.tail is None and self.star is None and self.children is None
        )


class Interest:
    """Index of all subscriptions of a service."""

    def __init__(self) -> None:
        self._literals: dict[bytes, Place] = {}
        self._root = TrieNode()

    def add(self, pattern: bytes, group: bytes, subscriber: Subscriber) -> None:
        """Add a subscriber to a valid pattern, plain or as a member of a group."""
        if is_literal(pattern):
            place = self._literals.get(pattern)
            self._literals[pattern] = _joined(place, group, subscriber)
            return
        node = self._root
        for element in elements(pattern):
            if element == b">":
                node.tail = _joined(node.tail, group, subscriber)
                return
            node = _stepped(node, element)
        node.here = _joined(node.here, group, subscriber)

    def remove(self, pattern: bytes, group: bytes, subscriber: Subscriber) -> None:
        """Remove a subscriber that add() added."""
        if is_literal(pattern):
            place = _parted(self._literals[pattern], group, subscriber)
            if place is None:
                del self._literals[pattern]
            else:
                self._literals[pattern] = place
            return
        path = [self._root]
        parts = elements(pattern)
        is_tail = parts[-1] == b">"
        if is_tail:
            parts.pop()
        for element in parts:
            path.append(_next(path[-1], element))
        node = path[-1]
        if is_tail:
            node.tail = _parted(node.tail, group, subscriber)
        else:
            node.here = _parted(node.here, group, subscriber)
        _prune(path, parts)

    def subscribers(self, pattern: bytes, group: bytes) -> Collection[Subscriber]:
        """The subscribers of exactly this pattern, plain or of a group."""
        place = self._place(pattern)
        if not isinstance(place, Audience):
            return () if place is None or group else (place,)
        if not group:
            return place.plain
        members = place.groups.get(group)
        return () if members is None else members.subscribers

    def match(self, subject: bytes) -> list[Place]:
        """All places whose pattern matches a valid subject."""
        found: list[Place] = []
        place = self._literals.get(subject)
        if place is not None:
            found.append(place)
        parts = elements(subject)
        if not is_reserved(subject):
            _collect(self._root, parts, 0, found)
        elif self._root.children is not None:
            # No wildcard matches a reserved first element.
            node = self._root.children.get(parts[0])
            if node is not None:
                _collect(node, parts, 1, found)
        return found

    def matching(self, subject: bytes) -> list[tuple[bytes, Place]]:
        """The same with the patterns, for listings; slower than match()."""
        found: list[tuple[bytes, Place]] = []
        place = self._literals.get(subject)
        if place is not None:
            found.append((subject, place))
        parts = elements(subject)
        is_system = is_reserved(subject)
        stack: list[tuple[TrieNode, list[bytes]]] = [(self._root, [])]
        while stack:
            node, walked = stack.pop()
            if len(walked) == len(parts):
                if node.here is not None:
                    found.append((b".".join(walked), node.here))
                continue
            element = parts[len(walked)]
            child = None if node.children is None else node.children.get(element)
            if child is not None:
                stack.append((child, [*walked, element]))
            # No wildcard matches a reserved first element.
            if walked or not is_system:
                if node.tail is not None:
                    found.append((b".".join([*walked, b">"]), node.tail))
                if node.star is not None:
                    stack.append((node.star, [*walked, b"*"]))
        return found

    def _place(self, pattern: bytes) -> Place | None:
        if is_literal(pattern):
            return self._literals.get(pattern)
        node: TrieNode | None = self._root
        for element in elements(pattern):
            if node is None:
                return None
            if element == b">":
                return node.tail
            node = node.star if element == b"*" else (node.children or {}).get(element)
        return None if node is None else node.here


def _collect(node: TrieNode, parts: list[bytes], at: int, found: list[Place]) -> None:
    if at == len(parts):
        if node.here is not None:
            found.append(node.here)
        return
    if node.tail is not None:
        found.append(node.tail)
    if node.children is not None:
        child = node.children.get(parts[at])
        if child is not None:
            _collect(child, parts, at + 1, found)
    if node.star is not None:
        _collect(node.star, parts, at + 1, found)


def _next(node: TrieNode, element: bytes) -> TrieNode:
    """The child for an element of a pattern that was added."""
    child = node.star if element == b"*" else (node.children or {}).get(element)
    if child is None:
        raise KeyError(element)
    return child


def _stepped(node: TrieNode, element: bytes) -> TrieNode:
    """The child for an element, created if it is missing."""
    if element == b"*":
        if node.star is None:
            node.star = TrieNode()
        return node.star
    if node.children is None:
        node.children = {}
    child = node.children.get(element)
    if child is None:
        child = TrieNode()
        node.children[element] = child
    return child


def _prune(path: list[TrieNode], parts: list[bytes]) -> None:
    """Remove the empty nodes at the end of a path."""
    for depth in range(len(parts) - 1, -1, -1):
        node = path[depth + 1]
        parent = path[depth]
        if not node.is_bare():
            return
        if parts[depth] == b"*":
            parent.star = None
        else:
            children = parent.children or {}
            del children[parts[depth]]
            if not children:
                parent.children = None


def _joined(place: Place | None, group: bytes, subscriber: Subscriber) -> Place:
    if place is None and not group:
        return subscriber
    audience = _audience(place)
    if group:
        members = audience.groups.get(group)
        if members is None:
            members = GroupMembers()
            audience.groups[group] = members
        members.subscribers[subscriber] = None
    else:
        audience.plain[subscriber] = None
    return audience


def _parted(place: Place | None, group: bytes, subscriber: Subscriber) -> Place | None:
    if place is subscriber:
        return None
    audience = _audience(place)
    if group:
        members = audience.groups[group]
        del members.subscribers[subscriber]
        if not members.subscribers:
            del audience.groups[group]
    else:
        del audience.plain[subscriber]
    if audience.groups or len(audience.plain) > 1:
        return audience
    return next(iter(audience.plain)) if audience.plain else None


def _audience(place: Place | None) -> Audience:
    if isinstance(place, Audience):
        return place
    audience = Audience()
    if place is not None:
        audience.plain[place] = None
    return audience
