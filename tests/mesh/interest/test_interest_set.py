"""What one gateway wants, followed by its changes."""

from hypothesis import given
from hypothesis import strategies as st
from tests.mesh.gateways import wanted

from weft.mesh.interest.interest_set import (
    NO_CHANGE,
    WANTED_MAX,
    WANTED_MAX_BYTES,
    InterestChange,
    WantedSet,
    digest_of,
    is_too_much,
)
from weft.mesh.protocol import InterestEntry, wanted_bytes

A, B, C = wanted(b"a"), wanted(b"b", b"g"), wanted(b"a", is_listener=True)
some = st.builds(
    InterestEntry,
    st.sampled_from([b"a", b"b", b"a.>"]),
    st.sampled_from([b"", b"g"]),
    st.booleans(),
)
changes = st.lists(st.tuples(st.lists(some), st.lists(some)))


@given(changes)
def test_it_is_the_set_that_its_changes_lead_to(
    steps: list[tuple[list[InterestEntry], list[InterestEntry]]],
) -> None:
    found = WantedSet()
    brute: set[InterestEntry] = set()
    for added, removed in steps:
        before = set(brute)
        brute = (brute - set(removed)) | set(added)
        assert found.digest_after(added, removed) == digest_of(brute)
        change = found.apply(added, removed)
        assert (before - set(change.removed)) | set(change.added) == brute
        assert len(set(change.removed)) == len(change.removed)
        assert found.sorted() == sorted(brute)
        assert len(found) == len(brute)
        assert found.digest == digest_of(brute)
        assert found.bytes == sum(map(wanted_bytes, brute))


@given(st.sets(some), st.sets(some))
def test_it_becomes_another_set_by_what_differs(
    before: set[InterestEntry], after: set[InterestEntry]
) -> None:
    found = WantedSet()
    found.apply(before, ())
    change = found.become(after)
    assert set(change.added) == after - before
    assert set(change.removed) == before - after
    assert found.sorted() == sorted(after)


@given(st.sets(some), st.sets(some))
def test_digests_are_the_same_for_the_same_set_only(
    one: set[InterestEntry], other: set[InterestEntry]
) -> None:
    assert (digest_of(one) == digest_of(other)) == (one == other)


def test_what_is_taken_away_twice_is_taken_away_once() -> None:
    found = WantedSet()
    found.apply([A, B], ())
    assert found.apply((), [A, A]) == InterestChange((), (A,))
    assert found.bytes == wanted_bytes(B)
    assert found.digest == digest_of([B])


def test_nothing_new_is_no_change() -> None:
    found = WantedSet()
    found.apply([A], ())
    assert found.apply([A], [B]) == NO_CHANGE


def test_to_listen_is_not_the_same_as_to_answer() -> None:
    found = WantedSet()
    found.apply([A], ())
    assert A in found
    assert C not in found
    assert digest_of([A]) != digest_of([C])


def test_a_name_cannot_be_moved_between_pattern_and_group() -> None:
    assert digest_of([InterestEntry(b"a", b"b")]) != digest_of([InterestEntry(b"ab")])
    assert digest_of([InterestEntry(b"ab", b"c")]) != digest_of([InterestEntry(b"a", b"bc")])


def test_nobody_may_want_more_than_the_bounds() -> None:
    assert not is_too_much(WANTED_MAX, WANTED_MAX_BYTES)
    assert is_too_much(WANTED_MAX + 1, 0)
    assert is_too_much(0, WANTED_MAX_BYTES + 1)
