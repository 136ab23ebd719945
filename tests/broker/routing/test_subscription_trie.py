import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.broker.delivery.arena import Arena
from weft.broker.delivery.outbox import Outbox
from weft.broker.delivery.policy import Bounds, Policy
from weft.broker.routing.subscription_trie import Audience, Interest, Place, Subscriber
from weft.wire.subjects import is_pattern, matches

ARENA = Arena(64)
BOUNDS = Bounds()
SUBSCRIBERS = [Subscriber(Outbox(ARENA, BOUNDS), Policy.CUT, False) for _ in range(4)]
ONE, OTHER, THIRD, _ = SUBSCRIBERS

element = st.sampled_from([b"a", b"b", b"_x"])
subject = st.lists(element, min_size=1, max_size=4).map(b".".join)
pattern = (
    st.lists(st.sampled_from([b"a", b"b", b"_x", b"*", b">"]), min_size=1, max_size=4)
    .map(b".".join)
    .filter(is_pattern)
)
group = st.sampled_from([b"", b"", b"g", b"h"])
who = st.integers(0, 3)


def heard(places: list[Place]) -> set[tuple[bytes, int]]:
    """Every group (or none) and subscriber that matched."""
    found = set()
    for place in places:
        if not isinstance(place, Audience):
            found.add((b"", SUBSCRIBERS.index(place)))
            continue
        found |= {(b"", SUBSCRIBERS.index(subscriber)) for subscriber in place.plain}
        for name, members in place.groups.items():
            found |= {(name, SUBSCRIBERS.index(subscriber)) for subscriber in members.subscribers}
    return found


def test_a_literal_subject_is_found() -> None:
    interest = Interest()
    interest.add(b"a.b", b"", ONE)
    assert heard(interest.match(b"a.b")) == {(b"", 0)}
    assert interest.match(b"a.c") == []


def test_a_longer_pattern_does_not_match_where_its_path_goes_on() -> None:
    interest = Interest()
    interest.add(b"*.b.c", b"", ONE)
    assert interest.matching(b"a.b") == []
    assert interest.matching(b"a.b.c") == [(b"*.b.c", ONE)]


@pytest.mark.parametrize("asked", [b"a.*.c", b"a.>", b"*.b.c", b">", b"*.*.*", b"*.>", b"a.b.*"])
def test_a_pattern_is_found_by_a_subject_it_matches(asked: bytes) -> None:
    interest = Interest()
    interest.add(asked, b"", ONE)
    assert heard(interest.match(b"a.b.c")) == {(b"", 0)}
    assert interest.match(b"b") == ([ONE] if asked == b">" else [])


def test_several_subscribers_of_one_pattern_are_all_found() -> None:
    interest = Interest()
    for subscriber in (ONE, OTHER, THIRD):
        interest.add(b"a.*", b"", subscriber)
    assert heard(interest.match(b"a.b")) == {(b"", 0), (b"", 1), (b"", 2)}


def test_removing_leaves_the_others() -> None:
    interest = Interest()
    for subscriber in (ONE, OTHER):
        interest.add(b"a", b"", subscriber)
    interest.remove(b"a", b"", ONE)
    assert interest.match(b"a") == [OTHER]
    interest.remove(b"a", b"", OTHER)
    assert interest.match(b"a") == []


def test_a_subscriber_can_be_a_plain_one_and_a_member_of_groups() -> None:
    interest = Interest()
    for name in (b"", b"g", b"h"):
        interest.add(b"a.>", name, ONE)
    interest.remove(b"a.>", b"g", ONE)
    assert heard(interest.match(b"a.b")) == {(b"", 0), (b"h", 0)}


def test_a_group_goes_on_without_a_member_that_leaves() -> None:
    interest = Interest()
    for subscriber in (ONE, OTHER):
        interest.add(b"a", b"g", subscriber)
    interest.remove(b"a", b"g", ONE)
    assert heard(interest.match(b"a")) == {(b"g", 1)}


def test_a_wildcard_does_not_stand_for_a_reserved_first_element() -> None:
    interest = Interest()
    interest.add(b">", b"", ONE)
    interest.add(b"*.a", b"", ONE)
    interest.add(b"_x.*", b"", OTHER)
    assert heard(interest.match(b"_x.a")) == {(b"", 1)}
    assert interest.match(b"_y.a") == []


def test_removing_what_was_never_added_is_an_error() -> None:
    interest = Interest()
    interest.add(b"a.*", b"", ONE)
    with pytest.raises(KeyError):
        interest.remove(b"b.*", b"", ONE)
    with pytest.raises(KeyError):
        interest.remove(b"a.*", b"", OTHER)


def test_a_reserved_name_nobody_asked_for_is_heard_by_nobody() -> None:
    assert Interest().match(b"_x.a") == []


@given(st.lists(st.tuples(pattern, group, who), max_size=30), st.data())
def test_the_trie_agrees_with_brute_force(
    asked: list[tuple[bytes, bytes, int]], data: st.DataObject
) -> None:
    interest = Interest()
    present: set[tuple[bytes, bytes, int]] = set()
    for entry in asked:
        name, of_group, number = entry
        if entry not in present:
            interest.add(name, of_group, SUBSCRIBERS[number])
            present.add(entry)
        elif data.draw(st.booleans()):
            interest.remove(name, of_group, SUBSCRIBERS[number])
            present.remove(entry)
    for sent_to in data.draw(st.lists(subject, max_size=5)):
        expected = {
            (of_group, number) for name, of_group, number in present if matches(name, sent_to)
        }
        assert heard(interest.match(sent_to)) == expected
        assert {
            (name, *who) for name, place in interest.matching(sent_to) for who in heard([place])
        } == {entry for entry in present if matches(entry[0], sent_to)}
    for name, of_group, number in sorted(present):
        interest.remove(name, of_group, SUBSCRIBERS[number])
    assert all(interest.match(sent_to) == [] for sent_to in (b"a", b"a.b", b"_x.a.b", b"a.a.a.a"))


@pytest.mark.parametrize("asked", [b"a.b", b"a.*", b"a.>"])
def test_removing_one_of_many_leaves_all_the_others(asked: bytes) -> None:
    interest = Interest()
    for subscriber in (ONE, OTHER, THIRD):
        interest.add(asked, b"", subscriber)
    interest.remove(asked, b"", ONE)
    assert heard(interest.match(b"a.b")) == {(b"", 1), (b"", 2)}


@pytest.mark.parametrize(
    "asked", [b"a.%d", b"%d.>", b"%d.*", b"%d.*.a", b"%d.a.*", b"*.%d.>", b"a.%d.*.b.>"]
)
def test_a_subscription_taken_back_leaves_nothing_behind(asked: bytes) -> None:
    interest = Interest()
    tracemalloc.start()
    try:
        for number in range(1000):
            interest.add(asked % number, b"", ONE)
            interest.remove(asked % number, b"", ONE)
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left < 16_384


def test_a_subscriber_says_if_it_only_listens() -> None:
    interest = Interest()
    listener = Subscriber(Outbox(ARENA, BOUNDS), Policy.LATEST, True)
    interest.add(b"a.*", b"", listener)
    (place,) = interest.match(b"a.b")
    assert place is listener
    assert (listener.is_listener, ONE.is_listener) == (True, False)
