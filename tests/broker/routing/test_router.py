import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.broker.delivery.arena import Arena
from weft.broker.delivery.outbox import Outbox
from weft.broker.delivery.policy import Bounds, Policy
from weft.broker.routing.route import Route
from weft.broker.routing.router import ListedSubscription, Router
from weft.errors import BadSubject, UsageError
from weft.wire.frames import Kind, encode
from weft.wire.subjects import is_pattern, matches

ARENA = Arena(64)
OUTBOXES = [Outbox(ARENA, Bounds()) for _ in range(3)]
ONE, OTHER, _ = OUTBOXES

pattern = (
    st.lists(st.sampled_from([b"a", b"b", b"*", b">"]), min_size=1, max_size=3)
    .map(b".".join)
    .filter(is_pattern)
)
subject = st.lists(st.sampled_from([b"a", b"b"]), min_size=1, max_size=3).map(b".".join)


def route(router: Router, name: bytes) -> Route:
    found = router.route(name)
    assert found is not None
    return found


def test_a_subscriber_is_routed_to_until_it_unsubscribes() -> None:
    router = Router()
    assert route(router, b"a.b").is_empty()
    assert router.subscribe(ONE, b"a.*")
    assert route(router, b"a.b").outboxes == [ONE]
    assert router.unsubscribe(ONE, b"a.*")
    assert route(router, b"a.b").is_empty()


def test_a_route_is_worked_out_once() -> None:
    router = Router()
    router.subscribe(ONE, b"a.>")
    assert route(router, b"a.b") is route(router, b"a.b")


def test_a_change_elsewhere_leaves_a_route_as_it_is() -> None:
    router = Router()
    router.subscribe(ONE, b"a.>")
    kept = route(router, b"a.b")
    router.subscribe(OTHER, b"b.>")
    router.subscribe(OTHER, b"a.c")
    assert not kept.is_stale
    assert route(router, b"a.b") is kept


@pytest.mark.parametrize("asked", [b"a.b", b"a.*", b">"])
def test_a_change_that_touches_a_route_makes_it_stale(asked: bytes) -> None:
    router = Router()
    before = route(router, b"a.b")
    router.subscribe(ONE, asked)
    assert before.is_stale
    between = route(router, b"a.b")
    router.unsubscribe(ONE, asked)
    assert between.is_stale


def test_subscribing_twice_is_one_subscription() -> None:
    router = Router()
    assert router.subscribe(ONE, b"a")
    assert not router.subscribe(ONE, b"a")
    assert len(router) == 1
    assert router.unsubscribe(ONE, b"a")
    assert not router.unsubscribe(ONE, b"a")
    assert len(router) == 0


def test_a_policy_can_be_changed() -> None:
    router = Router()
    router.subscribe(ONE, b"a", policy=Policy.LATEST)
    assert list(route(router, b"a").policies) == [Policy.LATEST]
    assert router.subscribe(ONE, b"a", policy=Policy.DROP_NEW)
    assert list(route(router, b"a").policies) == [Policy.DROP_NEW]
    assert len(router) == 1


@pytest.mark.parametrize("illegal", [b"", b"a..b", b"a*", b"a/b", b"\xff"])
def test_an_illegal_pattern_is_refused_and_changes_nothing(illegal: bytes) -> None:
    router = Router()
    with pytest.raises(BadSubject, match=f"{len(illegal)} bytes"):
        router.subscribe(ONE, illegal)
    assert router.subscriptions(ONE) == []


def test_there_is_no_such_policy_as_7() -> None:
    router = Router()
    with pytest.raises(UsageError, match="no policy 7"):
        router.subscribe(ONE, b"a", policy=7)
    assert len(router) == 0
    assert router.subscriptions(ONE) == []


@pytest.mark.parametrize("illegal", [b"", b"a.", b"a.*", b">", b"\xff", b"x" * 256])
def test_there_is_no_route_to_what_is_no_subject(illegal: bytes) -> None:
    router = Router()
    router.subscribe(ONE, b">")
    assert router.route(illegal) is None


def test_registrations_can_be_looked_up_both_ways() -> None:
    router = Router()
    router.subscribe(ONE, b"foo", policy=Policy.LATEST)
    router.subscribe(ONE, b"foo.>", group=b"g")
    router.subscribe(OTHER, b"foo")
    assert router.subscriptions(ONE) == [
        ListedSubscription(b"foo", b"", Policy.LATEST),
        ListedSubscription(b"foo.>", b"g", Policy.CUT),
    ]
    assert route(router, b"foo").outboxes == [ONE, OTHER]
    assert route(router, b"foo.x").groups[0].members == [ONE]


def test_those_who_listen_are_found_with_the_patterns_they_gave() -> None:
    router = Router()
    router.subscribe(ONE, b"a.b")
    router.subscribe(ONE, b"a.*", group=b"g")
    router.subscribe(OTHER, b"a.*", group=b"g", policy=Policy.LATEST)
    router.subscribe(OTHER, b">", is_listener=True)
    router.subscribe(OTHER, b"b")
    found, more = router.listeners(b"a.b", False, 10)
    assert {(each.subscription, OUTBOXES.index(each.outbox)) for each in found} == {
        (ListedSubscription(b">", b"", Policy.CUT, is_listener=True), 1),
        (ListedSubscription(b"a.*", b"g", Policy.CUT), 0),
        (ListedSubscription(b"a.*", b"g", Policy.LATEST), 1),
        (ListedSubscription(b"a.b", b"", Policy.CUT), 0),
    }
    assert more == 0
    assert router.listeners(b"c.d.e", True, 10) == ([], 0)


def test_of_many_who_listen_the_first_are_listed_and_the_others_counted() -> None:
    router = Router()
    for outbox in OUTBOXES:
        router.subscribe(outbox, b"a")
    found, more = router.listeners(b"a", False, 2)
    assert ([each.outbox for each in found], more) == (OUTBOXES[:2], 1)


def test_other_gateways_are_listed_apart_from_those_who_listen_here() -> None:
    router = Router()
    elsewhere = Outbox(ARENA, Bounds())
    elsewhere.is_distant = True
    router.subscribe(ONE, b"a")
    router.subscribe(elsewhere, b">")
    assert [each.outbox for each in router.listeners(b"a", False, 9)[0]] == [ONE]
    assert [each.outbox for each in router.listeners(b"a", True, 9)[0]] == [elsewhere]


def test_a_group_says_whose_turn_is_next_without_taking_it() -> None:
    router = Router()
    for outbox in OUTBOXES:
        router.subscribe(outbox, b"a", group=b"g")
    [group] = route(router, b"a").groups
    said = []
    for _ in range(4):
        assert group.turn() == group.turn()
        said.append((group.turn(), group.pick(None)))
    assert said == [(0, 0), (1, 1), (2, 2), (0, 0)]


def test_who_leaves_is_removed_everywhere() -> None:
    router = Router()
    for name in (b"a", b"a.*", b">"):
        router.subscribe(ONE, name)
        router.subscribe(ONE, name, group=b"g")
    router.subscribe(OTHER, b"a.b")
    assert router.leave(ONE) == 6
    assert router.leave(ONE) == 0
    assert route(router, b"a").is_empty()
    assert route(router, b"a.b").outboxes == [OTHER]
    assert len(router) == 1


def test_a_group_and_a_plain_subscription_are_apart() -> None:
    router = Router()
    router.subscribe(ONE, b"a", group=b"g")
    assert not router.unsubscribe(ONE, b"a")
    assert not router.unsubscribe(OTHER, b"a", group=b"g")
    assert router.unsubscribe(ONE, b"a", group=b"g")


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "remove", "send"]), st.integers(0, 2), pattern, subject),
        max_size=60,
    )
)
def test_a_router_with_a_tiny_cache_agrees_with_brute_force(
    steps: list[tuple[str, int, bytes, bytes]],
) -> None:
    router = Router(cached_routes_max=4)
    present: set[tuple[int, bytes]] = set()
    for step, number, name, sent_to in steps:
        if step == "add":
            assert router.subscribe(OUTBOXES[number], name) is ((number, name) not in present)
            present.add((number, name))
        elif step == "remove":
            assert router.unsubscribe(OUTBOXES[number], name) is ((number, name) in present)
            present.discard((number, name))
        else:
            expected = {OUTBOXES[who] for who, asked in present if matches(asked, sent_to)}
            assert set(route(router, sent_to).outboxes) == expected
        assert len(router) == len(present)


@pytest.mark.parametrize("pattern_of_another", [b"other.*", b"jobs.*"])
def test_a_group_shares_work_whatever_becomes_of_routes(pattern_of_another: bytes) -> None:
    arena = Arena(1 << 16)
    frame = encode(Kind.MESSAGE, b"jobs.1", b"")
    members = [Outbox(arena, Bounds()) for _ in range(4)]
    router = Router()
    for member in members:
        router.subscribe(member, b"jobs.>", group=b"workers")
    for number in range(100):
        router.subscribe(ONE, pattern_of_another)
        router.unsubscribe(ONE, pattern_of_another)
        start = arena.put(frame)
        route(router, b"jobs.%d" % (number % 50)).deliver(start, arena.fill, None, False)
    assert [member.pending // len(frame) for member in members] == [25, 25, 25, 25]


def test_what_was_forgotten_is_not_kept_in_the_cache() -> None:
    arena = Arena(64)
    leaver = Outbox(arena, Bounds())
    router = Router(cached_routes_max=16)
    references = sys.getrefcount(leaver)
    tracemalloc.start()
    try:
        for number in range(2_000):
            name = b"a.%d" % number
            router.subscribe(leaver, name)
            route(router, name)
            router.unsubscribe(leaver, name)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000
    assert sys.getrefcount(leaver) == references


@pytest.mark.parametrize("group", [b"", b"g"])
def test_a_policy_can_be_changed_to_one_that_keeps_less(group: bytes) -> None:
    router = Router()
    router.subscribe(ONE, b"a", group, Policy.CUT)
    assert router.subscribe(ONE, b"a", group, Policy.LATEST)
    changed = route(router, b"a")
    policies = changed.groups[0].policies if group else changed.policies
    assert list(policies) == [Policy.LATEST]
    assert router.unsubscribe(ONE, b"a", group)
    assert route(router, b"a").is_empty()


@pytest.mark.parametrize("group", [b"", b"g"])
def test_unsubscribing_leaves_the_other_subscriptions_of_a_connection(group: bytes) -> None:
    router = Router()
    for name in (b"a", b"b"):
        router.subscribe(ONE, name, group)
    assert router.unsubscribe(ONE, b"a", group)
    assert router.subscriptions(ONE) == [ListedSubscription(b"b", group, Policy.CUT)]
    assert router.unsubscribe(ONE, b"b", group)


def test_who_leaves_is_not_held_on_to() -> None:
    router = Router()
    before = sys.getrefcount(ONE)
    for name in (b"a", b"a.*", b">"):
        router.subscribe(ONE, name)
        router.subscribe(ONE, name, group=b"g")
    router.leave(ONE)
    assert sys.getrefcount(ONE) == before


def test_who_asked_for_what_there_is_not_is_not_held_on_to() -> None:
    router = Router()
    before = sys.getrefcount(ONE)
    with pytest.raises(ValueError, match="7"):
        router.subscribe(ONE, b"a", policy=7)
    assert sys.getrefcount(ONE) == before


def test_a_route_that_is_forgotten_holds_nobody() -> None:
    router = Router()
    before = sys.getrefcount(ONE)
    router.subscribe(ONE, b"a.b")
    route(router, b"a.b")
    router.leave(ONE)
    assert sys.getrefcount(ONE) == before


def test_a_subscription_is_had_with_its_group_and_no_other() -> None:
    router = Router()
    assert not router.has(ONE, b"a")
    router.subscribe(ONE, b"a", b"g")
    assert router.has(ONE, b"a", b"g")
    assert not router.has(ONE, b"a")
    assert not router.has(ONE, b"b", b"g")
    assert not router.has(OTHER, b"a", b"g")


def test_the_subscriptions_of_an_outbox_are_counted() -> None:
    router = Router()
    assert router.count(ONE) == 0
    router.subscribe(ONE, b"a")
    router.subscribe(ONE, b"a", b"g")
    router.subscribe(OTHER, b"b")
    assert (router.count(ONE), router.count(OTHER)) == (2, 1)
    router.leave(ONE)
    assert router.count(ONE) == 0


def test_one_who_only_listens_is_another_subscription_of_the_same_pattern() -> None:
    router = Router()
    router.subscribe(ONE, b"a", is_listener=True)
    assert route(router, b"a").responders == []
    assert router.subscriptions(ONE) == [ListedSubscription(b"a", b"", Policy.CUT, True)]
    assert not router.subscribe(ONE, b"a", is_listener=True)
    assert router.subscribe(ONE, b"a")
    assert route(router, b"a").responders == [ONE]
    assert len(router) == 1


@pytest.mark.parametrize("limit", range(5))
def test_no_more_subscriptions_are_listed_than_asked_for(limit: int) -> None:
    router = Router()
    wishes = [(b"a", b""), (b"b", b""), (b"a", b"g"), (b"b", b"g")]
    for pattern, group in wishes:
        router.subscribe(ONE, pattern, group)
    listed = router.subscriptions(ONE, limit)
    assert [(each.pattern, each.group) for each in listed] == wishes[:limit]
    assert router.subscriptions(OTHER, limit) == []
