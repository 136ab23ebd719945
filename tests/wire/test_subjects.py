import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadSubject
from weft.wire import subjects

ALPHABET = [b"a", b"b", b"_x", b"*", b">"]


def names(count: int, elements: list[bytes]) -> list[bytes]:
    """Every name of up to so many elements."""
    return [
        b".".join(parts)
        for length in range(1, count + 1)
        for parts in itertools.product(elements, repeat=length)
    ]


SUBJECTS = names(4, [b"a", b"b", b"_x"])
PATTERNS = [name for name in names(3, ALPHABET) if subjects.is_pattern(name)]


def brute_force_matches(pattern: list[bytes], subject: list[bytes]) -> bool:
    """The definition, element by element."""
    if not pattern or not subject:
        return not pattern and not subject
    if pattern[0] == b">":
        return len(pattern) == 1
    return pattern[0] in (b"*", subject[0]) and brute_force_matches(pattern[1:], subject[1:])


def expected_match(pattern: bytes, subject: bytes) -> bool:
    if subject.startswith(b"_") and pattern.startswith((b"*", b">")):
        return False
    return brute_force_matches(pattern.split(b"."), subject.split(b"."))


LEGAL_SUBJECTS = [
    b"a",
    b"RUN",
    b"RUN.HOME",
    b"sensors.london.temp",
    "größe.東京".encode(),
    b"a b.c",
    b"_INBOX.7.1",
    b"a-b.c_d.e$f",
    b".".join([b"e"] * 100),
    b"x" * 127,
    b"x" * 127 + b"." + b"y" * 127,
]
LEGAL_PATTERNS = [b"*", b">", b"*.b", b"a.*", b"a.*.c", b"a.>", b"*.>", b"*.*.*", b"_INBOX.>"]
ILLEGAL = [
    b"",
    b".",
    b".a",
    b"a.",
    b"a..b",
    b"abc*xyz",
    b"*a",
    b"a*.b",
    b"**",
    b"Foo.>.baz",
    b">.a",
    b"a>",
    b">>",
    b"a.>b",
    b"a/b",
    b"a.\x00",
    b"a\nb",
    b"a\x7f",
    b"\xff\xfe",
    b"a.\xc3",
    b"\xed\xa0\x80",
    b"x" * 128,
    b"a." + b"x" * 128 + b".b",
    b".".join([b"e"] * 101),
    b".".join([b"x" * 100] * 3),
]


@pytest.mark.req("MM-2")
@pytest.mark.parametrize("name", LEGAL_SUBJECTS)
def test_a_legal_subject_is_a_subject_and_a_pattern(name: bytes) -> None:
    assert subjects.is_subject(name)
    assert subjects.is_pattern(name)
    assert subjects.is_literal(name)


@pytest.mark.req("MM-2")
@pytest.mark.parametrize("name", LEGAL_PATTERNS)
def test_a_name_with_a_wildcard_is_a_pattern_and_no_subject(name: bytes) -> None:
    assert subjects.is_pattern(name)
    assert not subjects.is_subject(name)
    assert not subjects.is_literal(name)


@pytest.mark.req("MM-2")
@pytest.mark.parametrize("name", ILLEGAL)
def test_an_illegal_name_is_neither(name: bytes) -> None:
    assert not subjects.is_pattern(name)
    assert not subjects.is_subject(name)


@pytest.mark.req("MM-2")
@pytest.mark.parametrize(
    ("length", "is_legal"), [(1, True), (254, True), (255, True), (256, False), (1000, False)]
)
def test_a_name_has_at_most_255_bytes(length: int, is_legal: bool) -> None:
    name = (b"x" * 99 + b".") * 11
    name = name[: length - 1] + b"x"
    assert subjects.is_pattern(name) is is_legal


@pytest.mark.req("MM-2")
@pytest.mark.parametrize(
    ("pattern", "subject", "is_match"),
    [
        (b"RUN.*", b"RUN.HOME", True),
        (b"RUN.*", b"RUN", False),
        (b"RUN.*", b"RUN.for.IT", False),
        (b"RUN.>", b"RUN.DMC", True),
        (b"RUN.>", b"RUN.for.IT", True),
        (b"RUN.>", b"RUN", False),
        (b"RUN.>", b"HOME.RUN", False),
        (b"Your.*.*", b"Your.Amazing.Face", True),
        (b"*.your.*", b"Amazing.your.Mind", True),
        (b"run.home", b"RUN.home", False),
        (b"ab", b"abc", False),
        (b"abc", b"ab", False),
        (b"a.b", b"a.b", True),
        (b"RUN.>", b"RUNS", False),
        (b"RUN.>", b"RUNS.x", False),
        (b"RUN.*", b"RUNS.x", False),
        (b"RUNS.>", b"RUN.x", False),
    ],
)
def test_wildcards_are_those_of_rendezvous(pattern: bytes, subject: bytes, is_match: bool) -> None:
    assert subjects.matches(pattern, subject) is is_match


@pytest.mark.req("MM-2")
@pytest.mark.parametrize("pattern", PATTERNS)
def test_matching_agrees_with_brute_force(pattern: bytes) -> None:
    for subject in SUBJECTS:
        assert subjects.matches(pattern, subject) is expected_match(pattern, subject), subject


@pytest.mark.parametrize("wide", PATTERNS)
def test_containment_agrees_with_brute_force(wide: bytes) -> None:
    # Subjects are one element longer than patterns, which tells `>` from any number of `*`.
    for narrow in PATTERNS:
        heard = [subject for subject in SUBJECTS if expected_match(narrow, subject)]
        expected = all(expected_match(wide, subject) for subject in heard)
        assert subjects.covers(wide, narrow) is expected, narrow


@pytest.mark.parametrize("one", PATTERNS)
def test_overlap_agrees_with_brute_force(one: bytes) -> None:
    heard = [subject for subject in SUBJECTS if expected_match(one, subject)]
    for other in PATTERNS:
        expected = any(expected_match(other, subject) for subject in heard)
        assert subjects.overlaps(one, other) is expected, other


def test_no_wildcard_stands_for_a_reserved_first_element() -> None:
    assert not subjects.matches(b">", b"_INBOX.7")
    assert not subjects.matches(b"*.7", b"_INBOX.7")
    assert not subjects.covers(b">", b"_INBOX.>")
    assert not subjects.overlaps(b"_INBOX.>", b">")
    assert subjects.matches(b"_INBOX.*", b"_INBOX.7")
    assert subjects.matches(b"a.>", b"a._b")


@pytest.mark.parametrize(
    ("name", "is_reserved"), [(b"_WEFT.x", True), (b"_", True), (b"a._b", False), (b"", False)]
)
def test_a_leading_underscore_is_reserved(name: bytes, is_reserved: bool) -> None:
    assert subjects.is_reserved(name) is is_reserved


@pytest.mark.parametrize(
    ("name", "stays"),
    [
        (b"_WEFT.x", True),
        (b"_LOCAL.x", True),
        (b"_INBOX.x", True),
        (b"_CHANNEL", True),
        (b"_CHANNELS.x", True),
        (b"_CHANNEL.x", False),
        (b"_CHANNEL.>", False),
        (b"_WEFT.PIPELINE", True),
        (b"_WEFT.PIPELINE.x", False),
        (b"a._WEFT", False),
        (b">", False),
    ],
)
def test_of_what_is_reserved_only_channels_and_jobs_are_told_to_other_gateways(
    name: bytes, stays: bool
) -> None:
    assert subjects.stays_here(name) is stays


@pytest.mark.parametrize(
    ("path", "subject"), [("/a", b"a"), ("/a/b", b"a.b"), ("/größe/x y", "größe.x y".encode())]
)
def test_a_path_and_its_subject_are_the_same_name(path: str, subject: bytes) -> None:
    assert subjects.subject_from_path(path) == subject
    assert subjects.path_from_subject(subject) == path


@pytest.mark.parametrize("path", ["", "a/b", "/", "//a", "/a/", "/a//b", "/a.b", "/*", "/a/>"])
def test_a_path_that_is_no_subject_is_refused(path: str) -> None:
    with pytest.raises(BadSubject):
        subjects.subject_from_path(path)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("", "it is empty"),
        ("a..b", "element 2 is empty"),
        ("x" * 256, "256 bytes are over the limit of 255"),
        ("x" * 128, "element 1 has 128 bytes, the limit is 127"),
        (".".join("e" * 101), "101 elements are over the limit of 100"),
        ("a.>.b", "'>' may only be the last element"),
        ("a.b*", "element 2 mixes a wildcard"),
        ("a/b", "'/' or a control character"),
        ("a\ud800", "not UTF-8"),
        ("a>", "element 1 mixes a wildcard"),
        ("*.a/b", "'/' or a control character"),
        ("x" * 127 + "." + "y" * 126 + "/", "'/' or a control character"),
        ("e." * 99 + "/", "'/' or a control character"),
    ],
)
def test_the_error_names_the_broken_rule(name: str, rule: str) -> None:
    with pytest.raises(BadSubject, match=rule.replace("(", "\\(")):
        subjects.checked_pattern(name)


def test_a_wildcard_is_refused_where_a_subject_is_needed() -> None:
    assert subjects.checked_subject("a.b") == b"a.b"
    assert subjects.checked_pattern("a.>") == b"a.>"
    with pytest.raises(BadSubject, match="holds a wildcard"):
        subjects.checked_subject("a.>")


@given(st.binary(max_size=300))
def test_any_bytes_are_judged_and_the_rule_agrees(name: bytes) -> None:
    is_legal = subjects.is_pattern(name)
    try:
        subjects.checked_pattern(name.decode(errors="surrogateescape"))
    except BadSubject:
        assert not is_legal
    else:
        assert is_legal


@pytest.mark.parametrize(
    ("one", "other", "is_overlap"),
    [
        (b"ab", b"abc", False),
        (b"ab", b"ac", False),
        (b"ab.c", b"abc.c", False),
        (b"ab.>", b"abc.d", False),
        (b"*.ab", b"x.abc", False),
        (b"abc.*", b"abc.d", True),
    ],
)
def test_elements_overlap_as_a_whole_or_not_at_all(
    one: bytes, other: bytes, is_overlap: bool
) -> None:
    assert subjects.overlaps(one, other) is is_overlap
    assert subjects.overlaps(other, one) is is_overlap


@pytest.mark.parametrize("path", ["ab", "ab/c", "xa"])
def test_a_path_starts_with_a_slash(path: str) -> None:
    with pytest.raises(BadSubject, match="does not start with '/'"):
        subjects.subject_from_path(path)


def test_a_control_character_is_illegal_and_a_space_is_not() -> None:
    illegal = [byte for byte in range(128) if not subjects.is_pattern(b"a%cb" % byte)]
    assert illegal == [*range(32), *b"*/>", 127]


@pytest.mark.parametrize(("length", "mark"), [(64, ""), (65, "…"), (1000, "…")])
def test_the_error_shows_64_characters_of_a_name(length: int, mark: str) -> None:
    with pytest.raises(BadSubject, match=f"^'/x{{63}}'{mark} is not a legal subject"):
        subjects.checked_pattern("/" + "x" * (length - 1))
