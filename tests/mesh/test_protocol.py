"""Words between gateways, and their bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mesh.gateways import wanted

from weft.errors import BadWord
from weft.mesh.protocol import (
    ADDRESSES_MAX,
    RANGES_MAX,
    SUMMARY_MAX,
    WANTED_ROOM_BYTES,
    WORD_MAX_BYTES,
    Ack,
    AdvertWord,
    Delta,
    Gone,
    InterestEntry,
    Known,
    LostRanges,
    Ping,
    Redirect,
    Snapshot,
    Summary,
    Word,
    decode,
    encode,
    in_parts,
    wanted_bytes,
)

NODE = bytes(16)
elements = st.sampled_from([b"a", b"weather", b"*", b"x" * 100])
patterns = st.lists(elements, min_size=1, max_size=2).map(b".".join)
some = st.builds(InterestEntry, patterns, st.sampled_from([b"", b"g"]), st.booleans())


@given(st.lists(some))
def test_what_is_said_is_what_is_heard(wanted_there: list[InterestEntry]) -> None:
    for word in (
        Snapshot(NODE, 3, 0, True, tuple(wanted_there)),
        AdvertWord(b"said", b"signed", Delta(tuple(wanted_there), tuple(wanted_there)), 7),
        Summary((Known(NODE, 1, 2, 3),), True),
    ):
        assert decode(encode(word)) == word


@given(st.binary(max_size=200))
def test_any_bytes_are_a_word_or_refused(body: bytes) -> None:
    try:
        word = decode(body)
    except BadWord:
        return
    assert decode(encode(word)) == word


@pytest.mark.parametrize(
    "word",
    [
        Ping(-1, 0),
        Ping(1 << 62, 0),
        Ack(-1),
        Redirect(("a:1",) * (ADDRESSES_MAX + 1)),
        Redirect(("x" * 256,)),
        Gone(((1, 2),) * (RANGES_MAX + 1)),
        LostRanges(((1, 2),) * (RANGES_MAX + 1)),
        Summary((Known(NODE, 1, 2, 3),) * (SUMMARY_MAX + 1), True),
        Summary((Known(NODE[:15], 1, 2, 3),), True),
        Snapshot(NODE, 1, 0, True, (wanted(b""),)),
        Snapshot(NODE, 1, 0, True, (wanted(b"a..b"),)),
        Snapshot(NODE, 1, 0, True, (wanted(b"_LOCAL.a"),)),
        Snapshot(NODE, 1, 0, True, (wanted(b"x" * 256),)),
        Snapshot(NODE, 1, 0, True, (wanted(b"a", b"g" * 128),)),
        AdvertWord(b"x" * (16 << 10) + b"x", b""),
        AdvertWord(b"", b"x" * 129),
        AdvertWord(b"", b"", Delta((wanted(b"_INBOX.>"),))),
    ],
)
def test_what_is_over_its_bounds_is_no_word(word: Word) -> None:
    with pytest.raises(BadWord):
        decode(encode(word))


def test_a_word_that_is_too_large_is_not_even_looked_at() -> None:
    with pytest.raises(BadWord, match="over the limit"):
        decode(bytes(WORD_MAX_BYTES + 1))


@pytest.mark.parametrize("is_added", [True, False])
def test_patterns_leave_room_for_what_is_said_around_them(is_added: bool) -> None:
    many = tuple(wanted(b"%06d." % each + b"x" * 100) for each in range(4000))
    assert sum(map(wanted_bytes, many)) > WANTED_ROOM_BYTES
    delta = Delta(many) if is_added else Delta((), many)
    with pytest.raises(BadWord, match="over the limit"):
        decode(encode(AdvertWord(b"", b"", delta)))


@given(st.integers(0, 9000), st.integers(1, 100))
def test_parts_fit_into_words_and_are_everything(count: int, size: int) -> None:
    everything = [wanted(b"%06d." % each + b"x" * size) for each in range(count)]
    parts = list(in_parts(everything))
    assert [each for part in parts for each in part] == everything
    assert parts
    for part in parts:
        word = Snapshot(NODE, 1, 0, True, part)
        assert decode(encode(word)) == word


@given(some)
def test_the_bytes_of_what_is_wanted_are_never_fewer_than_counted(one: InterestEntry) -> None:
    assert len(encode(Snapshot(NODE, 0, 0, True, (one,)))) - len(
        encode(Snapshot(NODE, 0, 0, True, ()))
    ) <= wanted_bytes(one)
