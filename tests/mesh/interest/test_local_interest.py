"""What a gateway tells others that it wants: never less than is, and never more than they take."""

import re
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mesh.gateways import wanted

from weft.mesh.interest import local_interest
from weft.mesh.interest.interest_set import NO_CHANGE, InterestChange, WantedSet, is_too_much
from weft.mesh.interest.local_interest import OwnInterest, coarsened
from weft.mesh.protocol import InterestEntry

patterns = st.sampled_from(
    [b"a", b"b", b">", b"*", b"a.b", b"a.c", b"a.*", b"b.>", b"*.c", b"c.d.e", b"d.e", b"e.f"]
)
some = st.builds(InterestEntry, patterns, st.sampled_from([b"", b"", b"g"]), st.booleans())
subjects = [b"a", b"b", b"a.b", b"a.c", b"b.c", b"x.c", b"c.d.e", b"d.e", b"x", b"e.f", b"x.y.z"]


def matches(pattern: bytes, subject: bytes) -> bool:
    made = re.escape(pattern.decode()).replace(r"\*", "[^.]+").replace(">", ".+")
    return re.fullmatch(made, subject.decode()) is not None


def asks_for(told: Iterable[InterestEntry], subject: bytes) -> bool:
    """Whether messages to a subject are asked for."""
    return any(matches(each.pattern, subject) and not each.group for each in told)


def everything_of_a() -> InterestEntry:
    return wanted(b"a.>", is_listener=True)


def as_subscribed(told: list[InterestEntry]) -> dict[tuple[bytes, bytes], bool]:
    """What routers make of it: one subscription for each pattern and group."""
    return {(each.pattern, each.group): each.is_listener for each in told}


@given(st.lists(some, max_size=40), st.integers(0, 6))
def test_others_are_never_asked_for_less(steps: list[InterestEntry], exact_max: int) -> None:
    own = OwnInterest(exact_max=exact_max)
    followed = WantedSet()
    routed: dict[tuple[bytes, bytes], bool] = {}
    now: dict[tuple[bytes, bytes], InterestEntry] = {}
    for step in steps:
        before = now.pop(step[:2], None)
        changes = [] if before is None else [(before, False)]
        if before != step:
            now[step[:2]] = step
            changes.append((step, True))
        version = own.told.version
        change = own.change(changes)
        assert own.told.version == version + (change != NO_CHANGE)
        # Whoever follows the changes has the same set, and its router the same subscriptions.
        followed.apply(*change)
        assert followed.digest == own.told.digest
        for each in change.removed:
            del routed[each[:2]]
        for each in change.added:
            routed[each[:2]] = each.is_listener
        told = own.told.sorted()
        assert routed == as_subscribed(told)
        assert {each for each in told if each.group} == {e for e in now.values() if e.group}
        for subject in subjects:
            assert not asks_for(now.values(), subject) or asks_for(told, subject)
        # Requests come to nobody who does not answer them.
        assert {each for each in told if not each.is_listener} <= set(now.values())
        if not own.is_coarse:
            assert told == sorted(now.values())


def test_what_is_wanted_is_told_as_it_is_up_to_a_limit() -> None:
    own = OwnInterest(exact_max=2)
    change = own.change([(wanted(b"a.b"), True), (wanted(b"a.c"), True)])
    assert change == InterestChange((wanted(b"a.b"), wanted(b"a.c")), ())
    assert not own.is_coarse


def test_above_the_limit_first_elements_are_told() -> None:
    own = OwnInterest(exact_max=2)
    own.change([(wanted(b"a.b"), True), (wanted(b"a.c"), True)])
    change = own.change([(wanted(b"a.d.e"), True)])
    assert own.is_coarse
    assert change == InterestChange((everything_of_a(),), (wanted(b"a.b"), wanted(b"a.c")))
    # The prefix stays until the last that it stands for is gone.
    assert own.change([(wanted(b"a.d.e"), False)]) == NO_CHANGE


def test_below_half_of_the_limit_it_is_told_as_it_is_again() -> None:
    own = OwnInterest(exact_max=2)
    three = [wanted(b"a.b"), wanted(b"a.c"), wanted(b"b.c")]
    own.change([(each, True) for each in three])
    own.change([(three[2], False)])
    assert own.told.sorted() == [everything_of_a()]
    own.change([(three[1], False)])
    assert own.told.sorted() == [three[0]]


def test_what_the_gateway_wants_itself_stays_whoever_comes_and_goes() -> None:
    own = OwnInterest([b"a", b"b.>"], exact_max=2)
    a, b = wanted(b"a", is_listener=True), wanted(b"b.>", is_listener=True)
    assert own.change(()) == InterestChange((a, b), ())
    # To others a pattern is one: it is answered if a connection does.
    assert own.change([(wanted(b"a"), True)]) == InterestChange((wanted(b"a"),), (a,))
    assert own.change([(wanted(b"a"), False)]) == InterestChange((a,), (wanted(b"a"),))
    many = [wanted(b"b.%d" % each) for each in range(3)]
    assert own.change([(each, True) for each in many]) == NO_CHANGE
    assert own.is_coarse
    assert own.change([(each, False) for each in many]) == NO_CHANGE
    assert own.told.sorted() == [a, b]


def test_long_patterns_are_told_coarsely_before_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_interest, "PLAIN_MAX_BYTES", 300)
    own = OwnInterest()
    long = [wanted(b"a." + b"x" * 100 + b"%d" % each) for each in range(3)]
    own.change([(each, True) for each in long])
    assert own.told.sorted() == [everything_of_a()]
    own.change([(each, False) for each in long[1:]])
    assert own.told.sorted() == long[:1]


def test_members_of_groups_are_told_as_they_are() -> None:
    own = OwnInterest(exact_max=1)
    grouped = wanted(b"a.b", b"g")
    own.change([(wanted(b"a.b"), True), (wanted(b"a.c"), True), (grouped, True)])
    assert own.told.sorted() == [everything_of_a(), grouped]


def test_with_too_many_first_elements_everything_is_asked_for() -> None:
    own = OwnInterest(exact_max=4)
    many = [wanted(b"%d.a" % each) for each in range(9)]
    own.change([(each, True) for each in many])
    # No wildcard in the first place stands for channels.
    everything = [
        wanted(pattern, is_listener=True) for pattern in (b">", b"_CHANNEL.>", b"_WEFT.PIPELINE.>")
    ]
    assert own.told.sorted() == everything
    own.change([(each, False) for each in many[2:]])
    assert own.told.sorted() == many[:2]


def test_members_of_groups_beyond_what_others_take_wait_for_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local_interest, "GROUPED_MAX", 2)
    own = OwnInterest()
    a, b, c, d = (wanted(name, b"g") for name in (b"a", b"b", b"c", b"d"))
    own.change([(each, True) for each in (a, b, c, d)])
    assert own.told.sorted() == [a, b]
    assert own.untold == 2
    assert own.change([(c, False)]) == NO_CHANGE
    assert own.change([(a, False)]) == InterestChange((d,), (a,))
    assert own.untold == 0


def test_however_much_is_wanted_others_take_what_is_told() -> None:
    own = OwnInterest()
    long = b"x" * 120
    for many in (49_000, 60_000):
        own.change([(wanted(b"%d.%b" % (each, long)), True) for each in range(many)])
        own.change([(wanted(b"%b.%d" % (long, each), long), True) for each in range(many)])
        assert not is_too_much(len(own.told), own.told.bytes)


@pytest.mark.parametrize(
    ("pattern", "coarse"),
    [(b"a", b"a"), (b"a.b", b"a.>"), (b"a.>", b"a.>"), (b"*", b">"), (b"*.b", b">"), (b">", b">")],
)
def test_a_coarse_pattern_has_the_first_element_of_the_fine_one(
    pattern: bytes, coarse: bytes
) -> None:
    assert coarsened(wanted(pattern, is_listener=True)) == wanted(coarse, is_listener=True)
