import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadSubject
from weft.transports.json.paths import path_of, patterns_of, subject_of
from weft.wire.subjects import is_subject, matches

ELEMENTS = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="./*>"),
    min_size=1,
    max_size=8,
)
PATHS = st.lists(ELEMENTS, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


@given(PATHS)
def test_a_path_comes_back_from_its_subject(path: str) -> None:
    subject = subject_of(path)
    assert is_subject(subject)
    assert path_of(subject) == path


@given(PATHS)
def test_an_interest_with_subpaths_is_the_path_and_all_below_it(path: str) -> None:
    patterns = patterns_of(path, with_subpaths=True)
    for below, expected in (("", True), ("/x", True), ("/x/y", True)):
        subject = subject_of(path + below)
        assert any(matches(pattern, subject) for pattern in patterns) is expected
    assert not any(matches(pattern, b"elsewhere.entirely") for pattern in patterns)


def test_without_subpaths_it_is_the_path_alone() -> None:
    assert patterns_of("/a/b", with_subpaths=False) == [b"a.b"]


def test_a_star_stands_for_one_element_of_an_interest() -> None:
    assert patterns_of("/a/*/c", with_subpaths=True) == [b"a.*.c", b"a.*.c.>"]


BAD = ("", "a", "a/b", "/", "//", "/a//b", "/a/", "/a.b", "/.", "/a\nb", "/a\x00", "/" + "x" * 300)


@pytest.mark.parametrize("path", [*BAD, "/*", "/>", "/a/\ud800", None, 7, ["/a"], b"/a", True])
def test_what_is_no_path_is_refused(path: object) -> None:
    with pytest.raises(BadSubject):
        subject_of(path)


@pytest.mark.parametrize("path", [*BAD, "/a*", "/\ud800", 1.5, {}])
@pytest.mark.parametrize("with_subpaths", [True, False])
def test_what_is_no_path_is_no_interest(path: object, with_subpaths: bool) -> None:
    with pytest.raises(BadSubject):
        patterns_of(path, with_subpaths=with_subpaths)


def test_nothing_is_below_what_is_below_everything() -> None:
    assert patterns_of("/a/>", with_subpaths=False) == [b"a.>"]
    with pytest.raises(BadSubject):
        patterns_of("/a/>", with_subpaths=True)
