"""A subscription is served from the version of interest on that its pattern has been part of."""

from hypothesis import given
from hypothesis import strategies as st

from weft.broker.delivery.arena import Arena
from weft.broker.delivery.outbox import Outbox
from weft.broker.delivery.policy import Bounds, Policy
from weft.broker.routing.route import Route
from weft.broker.routing.router import Router
from weft.mesh.interest.activation import ROUTES_MAX, Activation
from weft.mesh.protocol import InterestEntry
from weft.mesh.routing.forward_header import MARKS, mark_of, version_of


class Place:
    """A gateway's router, and what it has told the others."""

    def __init__(self) -> None:
        self.router = Router()
        self.router.changes = {}
        self.activation = Activation(self.router)
        self.version = 0

    def subscribe(self, pattern: bytes, group: bytes = b"", policy: int = Policy.CUT) -> Outbox:
        outbox = Outbox(Arena(1024), Bounds())
        self.router.subscribe(outbox, pattern, group, policy)
        return outbox

    def tell(self, *added: bytes, removed: tuple[bytes, ...] = ()) -> int:
        """Advertise the next version."""
        self.version += 1
        self.router.changes = {}
        changes = [(InterestEntry(pattern, b"", True), False) for pattern in removed]
        changes += [(InterestEntry(pattern, b"", True), True) for pattern in added]
        self.activation.apply(changes, self.version)
        return self.version

    def served(self, subject: bytes, version: int) -> list[Outbox]:
        route = self.router.route(subject)
        assert route is not None
        return self.activation.route(route, mark_of(version)).outboxes


@given(st.integers(0, 1 << 40), st.integers(0, MARKS - 1))
def test_a_mark_stands_for_the_version_that_it_was_made_of(version: int, later: int) -> None:
    mark = mark_of(version)
    assert mark & 255
    assert mark <= 0xFFFF
    assert version_of(mark, version + later) == version


def test_a_subscriber_that_returned_is_not_served_by_what_is_still_on_its_way() -> None:
    place = Place()
    first = place.subscribe(b"a.>")
    before = place.tell(b"a.>")
    place.router.leave(first)
    place.tell(removed=(b"a.>",))
    second = place.subscribe(b"a.>")
    assert place.served(b"a.b", before) == []
    after = place.tell(b"a.>")
    assert place.served(b"a.b", before) == []
    assert place.served(b"a.b", after) == [second]


def test_a_subscriber_of_a_pattern_that_stayed_wanted_is_served_at_once() -> None:
    place = Place()
    first = place.subscribe(b"a.>")
    before = place.tell(b"a.>")
    second = place.subscribe(b"a.>")
    third = place.subscribe(b"a.*")
    assert set(place.served(b"a.b", before)) == {first, second}
    place.tell(b"a.*")
    assert set(place.served(b"a.b", before)) == {first, second}
    place.router.leave(first)
    assert set(place.served(b"a.b", place.version)) == {second, third}


def test_a_pattern_that_is_asked_for_otherwise_has_not_been_away() -> None:
    place = Place()
    outbox = place.subscribe(b"a")
    before = place.tell(b"a")
    place.tell(b"a", removed=(b"a",))
    place.tell(b"b")
    assert place.served(b"a", before) == [outbox]


def test_of_several_policies_that_of_the_active_patterns_counts() -> None:
    place = Place()
    outbox = place.subscribe(b"a", policy=Policy.LATEST)
    before = place.tell(b"a")
    place.router.subscribe(outbox, b"*", b"", Policy.CUT)
    place.tell(b"*")
    route = place.router.route(b"a")
    assert route is not None
    active = place.activation.route(route, mark_of(before))
    assert (active.outboxes, list(active.policies)) == ([outbox], [Policy.LATEST])
    place.router.subscribe(outbox, b"a", b"", Policy.DROP_OLD)
    route = place.router.route(b"a")
    assert route is not None
    assert list(place.activation.route(route, mark_of(before)).policies) == [Policy.DROP_OLD]


def test_members_of_groups_are_served_apart() -> None:
    place = Place()
    place.subscribe(b"a", b"workers")
    before = place.tell()
    place.activation.apply([(InterestEntry(b"a", b"workers", True), True)], place.version)
    place.subscribe(b"b")
    assert place.served(b"a", before) == []


def test_routes_that_are_remembered_are_bounded() -> None:
    place = Place()
    place.subscribe(b">")
    before = place.tell()
    after = place.tell(b">")
    first = Route(b"a", [])
    kept = place.activation.route(first, mark_of(before))
    assert place.activation.route(first, mark_of(before)) is kept
    for number in range(ROUTES_MAX):
        place.served(b"b.%d" % number, before)
    assert place.activation.route(first, mark_of(before)) is not kept
    assert place.activation.route(first, mark_of(after)) is first
