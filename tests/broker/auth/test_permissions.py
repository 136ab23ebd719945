import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.broker.auth.permissions import (
    PUBLISH,
    REPLAY,
    REQUEST,
    RIGHTS,
    SUBSCRIBE,
    Enabled,
    Rights,
    Rule,
    may_not,
)
from weft.errors import NotAllowed
from weft.wire.subjects import is_pattern, matches

ELEMENTS = [b"a", b"b", b"_LOCAL"]
# With an element that no pattern names, and one more than any has: enough to tell them apart.
SUBJECTS = [
    b".".join(parts)
    for length in range(1, 5)
    for parts in itertools.product([*ELEMENTS, b"c"], repeat=length)
]
patterns = (
    st.lists(st.sampled_from([*ELEMENTS, b"*", b">"]), min_size=1, max_size=3)
    .map(b".".join)
    .filter(is_pattern)
)


def rule(*allow: bytes, deny: tuple[bytes, ...] = (), is_all: bool = False) -> Rule:
    return Rule(is_all, allow, deny)


def rights(enabled: Enabled | None = None, **rules: Rule) -> Rights:
    return Rights(tuple(rules.get(name, rule()) for name in RIGHTS), enabled)


def test_what_nobody_granted_is_not_allowed() -> None:
    assert not rights().allows(PUBLISH, b"a")


@pytest.mark.parametrize("name", [b"a", b"a.b", b"_LOCAL.a", b">", b"a.*"])
def test_who_is_allowed_all_is_allowed_this(name: bytes) -> None:
    assert rights(publish=rule(is_all=True)).allows(PUBLISH, name)


def test_deny_wins_over_all_and_over_an_allow_that_says_more() -> None:
    assert not rights(publish=rule(is_all=True, deny=(b"a.>",))).allows(PUBLISH, b"a.b")
    assert not rights(publish=rule(b"a.b", deny=(b"a.*",))).allows(PUBLISH, b"a.b")


def test_a_right_to_everything_is_no_right_to_reserved_names() -> None:
    assert not rights(publish=rule(b">")).allows(PUBLISH, b"_LOCAL.a")
    assert rights(publish=rule(b"_LOCAL.>")).allows(PUBLISH, b"_LOCAL.a")


def test_a_pattern_must_lie_inside_one_that_is_allowed() -> None:
    two = rights(subscribe=rule(b"a.b", b"a.c"))
    assert not two.allows(SUBSCRIBE, b"a.*")
    assert two.allows(SUBSCRIBE, b"a.b")


def test_everything_with_a_deny_inside_is_not_allowed() -> None:
    assert not rights(subscribe=rule(b">", deny=(b"a.secret",))).allows(SUBSCRIBE, b">")


def test_rights_are_apart() -> None:
    only = rights(publish=rule(b"a"))
    assert [only.allows(right, b"a") for right in range(5)] == [True] + [False] * 4
    assert [only.has(right) for right in range(5)] == [True] + [False] * 4
    assert rights(replay=rule(is_all=True)).has(REPLAY)


def test_what_is_denied_can_be_asked_by_itself() -> None:
    assert rights(subscribe=rule(deny=(b"a.>",))).denies(SUBSCRIBE, b"a.b")
    assert not rights(subscribe=rule(deny=(b"a.>",))).denies(SUBSCRIBE, b"b")


@given(st.lists(patterns, max_size=3), st.lists(patterns, max_size=3), st.sampled_from(SUBJECTS))
def test_a_subject_is_allowed_as_a_brute_force_says(
    allow: list[bytes], deny: list[bytes], subject: bytes
) -> None:
    expected = any(matches(each, subject) for each in allow)
    expected = expected and not any(matches(each, subject) for each in deny)
    assert rights(publish=rule(*allow, deny=tuple(deny))).allows(PUBLISH, subject) == expected


@given(patterns, st.lists(patterns, max_size=3), patterns)
def test_a_pattern_is_allowed_as_a_brute_force_says(
    allow: bytes, deny: list[bytes], asked: bytes
) -> None:
    heard = [subject for subject in SUBJECTS if matches(asked, subject)]
    expected = all(matches(allow, subject) for subject in heard)
    expected = expected and not any(matches(each, name) for each in deny for name in heard)
    assert rights(subscribe=rule(allow, deny=tuple(deny))).allows(SUBSCRIBE, asked) == expected


@given(st.lists(st.tuples(st.integers(0, 2), patterns, st.integers(1, 3), st.booleans())))
def test_what_is_enabled_agrees_with_a_brute_force(
    deeds: list[tuple[int, bytes, int, bool]],
) -> None:
    enabled = Enabled()
    held: set[tuple[int, bytes, int]] = set()
    for right, pattern, number, is_held in deeds:
        others = {each for each in held if each[:2] == (right, pattern)}
        if is_held:
            assert enabled.hold(right, pattern, number) == (not others)
            held.add((right, pattern, number))
        elif others:
            held.discard((right, pattern, number))
            is_left = any(each[:2] == (right, pattern) for each in held)
            assert enabled.let_go(right, pattern, number) == (not is_left)
    for right in range(4):
        for subject in SUBJECTS:
            expected = any(each[0] == right and matches(each[1], subject) for each in held)
            assert enabled.grants(right, subject) == expected


@pytest.mark.req("MID-12")
def test_each_enabled_right_is_a_set_of_its_own_for_exactly_that_target() -> None:
    enabled = Enabled()
    enabled.hold(REQUEST, b"a.b", 1)
    client = rights(enabled)
    assert [client.allows(right, b"a.b") for right in range(5)] == [
        False,
        False,
        True,
        False,
        False,
    ]
    assert not client.allows(REQUEST, b"a.c")


def test_a_pattern_that_is_let_go_grants_nothing_more() -> None:
    enabled = Enabled()
    enabled.hold(PUBLISH, b"a.*", 1)
    enabled.hold(PUBLISH, b"a.>", 1)
    assert enabled.let_go(PUBLISH, b"a.>", 1)
    assert enabled.grants(PUBLISH, b"a.b")
    assert not enabled.grants(PUBLISH, b"a.b.c")


def test_what_is_denied_cannot_be_enabled() -> None:
    enabled = Enabled()
    enabled.hold(PUBLISH, b">", 1)
    client = rights(enabled, publish=rule(deny=(b"a.secret",)))
    assert client.allows(PUBLISH, b"a.open")
    assert not client.allows(PUBLISH, b"a.secret")


def test_a_refusal_names_the_deed_and_the_subject() -> None:
    refusal = may_not("publish to", b"a.b")
    assert isinstance(refusal, NotAllowed)
    assert str(refusal) == "this connection may not publish to 'a.b'"
