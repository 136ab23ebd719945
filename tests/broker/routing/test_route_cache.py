import itertools
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.broker.delivery.arena import Arena
from weft.broker.delivery.outbox import Outbox
from weft.broker.delivery.policy import Bounds, Policy
from weft.broker.routing.route import Route
from weft.broker.routing.route_cache import RouteCache
from weft.broker.routing.subscription_trie import Interest, Subscriber
from weft.wire.subjects import is_pattern, matches

SUBJECTS = [
    b".".join(parts)
    for length in (1, 2, 3)
    for parts in itertools.product([b"a", b"b", b"_x"], repeat=length)
]


PATTERNS = [
    name
    for length in (1, 2, 3)
    for name in map(b".".join, itertools.product([b"a", b"_x", b"*", b">"], repeat=length))
    if is_pattern(name)
]


def filled(limit: int, subjects: list[bytes]) -> tuple[RouteCache, dict[bytes, Route]]:
    cache = RouteCache(limit)
    routes = {subject: Route(subject, []) for subject in subjects}
    for route in routes.values():
        cache.add(route)
    return cache, routes


def test_a_remembered_route_is_found() -> None:
    cache, routes = filled(10, [b"a", b"b"])
    assert cache.get(b"a") is routes[b"a"]
    assert cache.get(b"c") is None


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_makes_stale_what_it_matches_and_nothing_else(pattern: bytes) -> None:
    cache, routes = filled(1000, SUBJECTS)
    cache.forget(pattern)
    for subject, route in routes.items():
        assert route.is_stale is matches(pattern, subject)
        assert (cache.get(subject) is None) is matches(pattern, subject)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_routes_of_the_older_generation_are_made_stale_too(pattern: bytes) -> None:
    cache, routes = filled(50, SUBJECTS)
    cache.forget(pattern)
    assert all(route.is_stale is matches(pattern, name) for name, route in routes.items())


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 10])
def test_the_cache_is_bounded(limit: int) -> None:
    cache, routes = filled(limit, [b"%d" % number for number in range(1000)])
    assert len(cache) <= max(2, limit)
    assert cache.get(b"999") is routes[b"999"]


def test_a_route_that_leaves_the_cache_is_stale() -> None:
    cache, routes = filled(10, [b"%d" % number for number in range(100)])
    remembered = {name for name in routes if not routes[name].is_stale}
    assert len(remembered) == len(cache)
    assert all(cache.get(name) is routes[name] for name in sorted(remembered, reverse=True)[:5])


def test_a_route_in_use_outlives_those_that_are_not() -> None:
    cache, routes = filled(10, [b"busy"])
    for number in range(100):
        cache.add(Route(b"%d" % number, []))
        assert cache.get(b"busy") is routes[b"busy"]
    assert not routes[b"busy"].is_stale


def test_a_route_can_be_remembered_again() -> None:
    cache, _ = filled(10, [b"a.b"])
    cache.forget(b"a.*")
    again = Route(b"a.b", [])
    cache.add(again)
    assert cache.get(b"a.b") is again
    cache.forget(b">")
    assert again.is_stale


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("use"), st.sampled_from(SUBJECTS)),
            st.tuples(st.just("forget"), st.sampled_from(PATTERNS)),
        ),
        max_size=60,
    )
)
def test_a_held_route_is_stale_once_a_pattern_touched_it(steps: list[tuple[str, bytes]]) -> None:
    cache = RouteCache(6)
    held: dict[bytes, Route] = {}
    for step, name in steps:
        if step == "use":
            route = cache.get(name)
            if route is None:
                route = Route(name, [])
                cache.add(route)
            assert not route.is_stale
            held[name] = route
        else:
            cache.forget(name)
            touched = [route for subject, route in held.items() if matches(name, subject)]
            assert all(route.is_stale for route in touched)
        assert len(cache) <= 6


def test_deep_subjects_do_not_make_the_cache_larger() -> None:
    cache = RouteCache(100)
    for number in range(100):
        cache.add(Route(b".".join([b"%d" % number] * 100), []))
    assert len(cache) < 20


def test_wide_routes_do_not_make_the_cache_larger() -> None:
    arena, interest = Arena(), Interest()
    for number in range(20):
        subscriber = Subscriber(Outbox(arena, Bounds()), Policy.CUT, False)
        interest.add(b">", b"" if number % 2 else b"group", subscriber)
    cache = RouteCache(1000, receivers_max=200)
    routes = [Route(b"a.%d" % number, interest.match(b"a.b")) for number in range(50)]
    for route in routes:
        cache.add(route)
        assert len(cache) * route.receivers() <= 200
    assert [route.is_stale for route in routes[-5:]] == [False] * 5


@pytest.mark.parametrize("pattern", [b"_INBOX.7.%d", b"_INBOX.7.*", b"_INBOX.>"])
def test_a_route_that_is_forgotten_leaves_nothing_behind(pattern: bytes) -> None:
    cache = RouteCache(10)
    tracemalloc.start()
    try:
        for number in range(1000):
            cache.add(Route(b"_INBOX.7.%d" % number, []))
            cache.forget(pattern.replace(b"%d", b"%d" % number))
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left < 16_384
