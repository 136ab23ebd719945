import hashlib

import pytest

from weft.errors import BadWord
from weft.mesh.channels.protocol import (
    HELD_MAX,
    RECORDS_MAX,
    ChannelAnnouncement,
    ChannelAsk,
    ChannelClosedNotice,
    ChannelDropped,
    ChannelRecords,
    ChannelsHeld,
    ChannelsSeen,
    ChannelVote,
    ChannelWord,
    Record,
)
from weft.mesh.protocol import WORD_MAX_BYTES, decode, encode

RECORD = Record(b"room", b"o" * 16, 3, b"k" * 32, b"s" * 32, "alice", "london")
OPEN = Record(b"room", b"o" * 16, 3)
ID = b"i" * 16


@pytest.mark.parametrize(
    "word",
    [
        ChannelAsk(1, RECORD),
        ChannelVote(1, "confirmed", 3),
        ChannelsHeld(2, (ChannelAnnouncement(ID, 4, 5),)),
        ChannelsSeen(2, (ID,), (b"j" * 16,)),
        ChannelRecords((RECORD, OPEN)),
        ChannelDropped(3, b"room", ID),
        ChannelClosedNotice(OPEN),
    ],
)
def test_a_word_comes_back_as_it_was(word: ChannelWord) -> None:
    assert decode(encode(word)) == word


@pytest.mark.parametrize(
    "word",
    [
        ChannelAsk(1, RECORD._replace(name=b"")),
        ChannelAsk(1, RECORD._replace(name=b"x" * 128)),
        ChannelAsk(1, RECORD._replace(owner=b"short")),
        ChannelAsk(1, RECORD._replace(stored=b"k" * 33)),
        ChannelAsk(-1, RECORD),
        ChannelsHeld(1, (ChannelAnnouncement(ID, 0),)),
        ChannelsHeld(1, (ChannelAnnouncement(ID[:15], 1),)),
        ChannelsHeld(1, (ChannelAnnouncement(ID, 1),) * (HELD_MAX + 1)),
        ChannelRecords((OPEN,) * (RECORDS_MAX + 1)),
    ],
)
def test_a_word_over_its_bounds_is_none(word: ChannelWord) -> None:
    with pytest.raises(BadWord):
        decode(encode(word))


def test_the_longest_words_fit() -> None:
    longest = RECORD._replace(name=b"n" * 127, opener="o" * 255, gateway="g" * 255)
    held = ChannelsHeld(1 << 61, (ChannelAnnouncement(ID, 1 << 61, 1 << 61),) * HELD_MAX)
    seen = ChannelsSeen(1 << 61, (ID,) * HELD_MAX, (ID,) * HELD_MAX)
    for word in (held, seen, ChannelRecords((longest,) * RECORDS_MAX)):
        assert len(encode(word)) < WORD_MAX_BYTES


@pytest.mark.req("RLY-14")
@pytest.mark.parametrize(
    "other",
    [
        RECORD._replace(name=b"hall"),
        RECORD._replace(owner=b"p" * 16),
        RECORD._replace(epoch=4),
        RECORD._replace(stored=b"l" * 32),
        RECORD._replace(server=b"t" * 32),
        OPEN,
    ],
)
def test_whatever_makes_it_another_channel_makes_another_id(other: Record) -> None:
    assert other.channel("chat") != RECORD.channel("chat")
    assert RECORD.channel("chat") != RECORD.channel("other")


def test_who_opened_it_and_where_is_told_and_makes_no_other_channel() -> None:
    assert RECORD._replace(opener="bob", gateway="oslo").channel("chat") == RECORD.channel("chat")


@pytest.mark.req("RLY-13")
def test_the_id_of_one_without_a_password_follows_from_its_name() -> None:
    said = hashlib.sha256(b"weft open channel 1\0chat\0room").digest()[:16]
    assert OPEN.channel("chat") == said
    assert OPEN._replace(owner=b"p" * 16, epoch=9).channel("chat") == said


@pytest.mark.parametrize(
    ("stored", "server", "is_sound"),
    [(b"", b"", True), (b"k" * 32, b"s" * 32, True), (b"k" * 32, b"", False), (b"k", b"s", False)],
)
def test_a_record_has_all_keys_or_none(stored: bytes, server: bytes, is_sound: bool) -> None:
    assert OPEN._replace(stored=stored, server=server).is_sound == is_sound


@pytest.mark.parametrize("name", [b"_WEFT.ask", b"a..b", b"a.>", b"\xff", b"a b\n"])
def test_a_name_that_people_could_not_use_is_none(name: bytes) -> None:
    assert not OPEN._replace(name=name).is_sound
