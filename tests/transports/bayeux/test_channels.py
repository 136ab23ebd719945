import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadSubject, Reserved
from weft.transports.bayeux.channels import (
    channel_of,
    is_meta,
    is_told,
    pattern_of,
    published_to,
)
from weft.wire.subjects import is_pattern, is_subject, matches

pytestmark = pytest.mark.req("TUN-24")

ELEMENTS = st.text(st.sampled_from("abcXYZ019-_!~()$@ü"), min_size=1, max_size=8).filter(
    lambda text: not text.startswith("_")
)
CHANNELS = st.lists(ELEMENTS, min_size=1, max_size=5).map(lambda found: "/" + "/".join(found))


def brute_matches(pattern: str, channel: str) -> bool:
    """What Bayeux says of wildcards."""
    before, _, last = pattern.rpartition("/")
    if last == "*":
        return channel.rpartition("/")[0] == before
    if last == "**":
        return channel.startswith(before + "/")
    return pattern == channel


@given(CHANNELS.filter(lambda channel: not is_meta(channel)))
def test_a_channel_is_a_subject_and_back(channel: str) -> None:
    subject = published_to(channel)
    assert is_subject(subject)
    assert channel_of(subject) == channel
    assert pattern_of(channel) == subject


@given(
    st.sampled_from(["/a", "/a/b", "/*", "/**", "/a/*", "/a/**", "/a/b/*", "/a/b/**"]),
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=4),
)
def test_wildcards_match_what_bayeux_says(pattern: str, elements: list[str]) -> None:
    channel = "/" + "/".join(elements)
    asked = pattern_of(pattern)
    assert is_pattern(asked)
    assert matches(asked, published_to(channel)) == brute_matches(pattern, channel)


@pytest.mark.parametrize(
    "channel",
    [
        *("", "a", "a/b", "/", "//", "/a//b", "/a/", "/a.b", "/a\x00", "/a\n"),
        *("/" + "x" * 128, "/x" * 128, "/\ud800"),
    ],
)
def test_what_is_no_channel_is_refused(channel: str) -> None:
    with pytest.raises(BadSubject):
        published_to(channel)
    with pytest.raises(BadSubject):
        pattern_of(channel)


@pytest.mark.parametrize("channel", ["/*", "/**", "/a/*", "/a/**", "/>", "/a/>"])
def test_nobody_publishes_to_a_wildcard(channel: str) -> None:
    with pytest.raises(BadSubject):
        published_to(channel)


@pytest.mark.parametrize(
    "channel", ["/>", "/a/>", "/*/a", "/a/*/b", "/**/a", "/a/***", "/a/b*", "/>/a", "/a>"]
)
def test_wildcards_are_bayeuxs_own_and_last(channel: str) -> None:
    with pytest.raises(BadSubject):
        pattern_of(channel)


@pytest.mark.parametrize("channel", [7, None, ["/a"], {"a": 1}, True])
def test_a_channel_is_a_string(channel: object) -> None:
    with pytest.raises(BadSubject, match="a channel is a string"):
        pattern_of(channel)


@pytest.mark.parametrize("channel", ["/meta", "/meta/connect", "/meta/*", "/meta/**", "/meta/x/y"])
def test_the_protocol_cannot_be_subscribed_or_published_to(channel: str) -> None:
    with pytest.raises(Reserved):
        pattern_of(channel)
    with pytest.raises(Reserved):
        published_to(channel)


@pytest.mark.parametrize("channel", ["/_WEFT/**", "/_WEFT/event/connected", "/_INBOX/**", "/_x"])
def test_what_is_the_systems_cannot_be_subscribed_to(channel: str) -> None:
    with pytest.raises(Reserved):
        pattern_of(channel)


def test_what_stays_on_its_gateway_is_used_like_any_other() -> None:
    assert pattern_of("/_LOCAL/a/**") == b"_LOCAL.a.>"
    assert published_to("/_LOCAL/a") == b"_LOCAL.a"


def test_service_channels_are_channels_like_any_other() -> None:
    assert published_to("/service/echo") == b"service.echo"
    assert pattern_of("/service/**") == b"service.>"


@pytest.mark.parametrize(
    ("subject", "is_so"),
    [(b"meta", False), (b"meta.connect", False), (b"metal", True), (b"a.meta", True)],
)
def test_nothing_that_looks_like_the_protocol_is_told(subject: bytes, is_so: bool) -> None:
    assert is_told(subject) == is_so
