import pytest
from tests.broker.journal.test_acks import Library
from tests.broker.journal.test_batcher import frames_in
from tests.broker.talk import ORIGIN, message

from weft.broker.auth.permissions import Rights, Rule
from weft.broker.journal.release_staged import Release, checked_rows
from weft.errors import BadFrame, BadSubject, NotAllowed, Reserved
from weft.wire.frames import Flag, Kind, encode, parse

LIMIT = 1000


def give(house: Library, release: Release, *frames: bytes) -> None:
    data = b"".join(frames)
    start = house.arena.put(data)
    release.publish(start, start + len(data))
    house.flush()


def test_staged_messages_go_to_everybody_and_into_the_journal_under_a_number_of_their_own() -> None:
    house = Library()
    reader, other = house.guest(b"", b">"), house.guest(b"", b"_WEFT.PIPELINE.>")
    release = Release(house.service)
    assert release.publisher not in (reader.peer.number, other.peer.number)
    rows = [message(b"a.b", b"1"), message(b"a.b", b"2"), message(b"c", b"3")]
    give(house, release, *rows, message(b"_WEFT.PIPELINE.rates", b"4"))
    assert release.is_begun
    heard = reader.heard()
    assert [frame.body for frame in heard] == [b"1", b"2", b"3"]
    assert {(frame.origin, frame.publisher) for frame in heard} == {(ORIGIN, release.publisher)}
    assert [frame.sequence for frame in heard] == [1, 2, 3]
    assert [frame.body for frame in other.heard()] == [b"4"]
    assert [parse(frame) for frame in frames_in(house.batches[0])] == heard[:2]
    assert (house.service.total.messages, house.service.deliveries) == (4, 4)


def test_members_of_a_group_share_them() -> None:
    house = Library()
    readers = [house.guest(), house.guest()]
    for reader in readers:
        reader.say(encode(Kind.SUBSCRIBE, b"a.>", b"", b"group"))
    give(house, Release(house.service), *(message(b"a.b", b"%d" % n) for n in range(4)))
    assert [len(reader.heard()) for reader in readers] == [2, 2]


@pytest.mark.parametrize(
    ("known", "left"),
    [
        (0, [b"1", b"2", b"3", b"4", b"5"]),
        (1, [b"2", b"3", b"4", b"5"]),
        (2, [b"3", b"4", b"5"]),
        (3, [b"5"]),
    ],
)
def test_what_is_out_already_is_left_out(known: int, left: list[bytes]) -> None:
    house = Library()
    reader = house.guest(b"", b">")
    release = Release(house.service)
    release.known = known
    rows = [message(b"a.b", b"1"), message(b"a.b", b"2")]
    # Between two that are kept is one that is not: it is out if the second one is.
    give(house, release, *rows, message(b"c", b"3"), message(b"a.d", b"4"), message(b"c", b"5"))
    assert [frame.body for frame in reader.heard()] == left


def test_a_message_that_was_not_checked_is_a_fault_of_ours() -> None:
    house = Library()
    with pytest.raises(BadSubject):
        give(house, Release(house.service), message(b"a..b"))


def test_so_many_messages_may_be_released() -> None:
    assert checked_rows(b"", LIMIT) == 0
    rows = [
        encode(Kind.MESSAGE, b"a.b", b"1"),
        encode(Kind.MESSAGE, b"a.b", b"1", b"reply.here"),
        encode(Kind.MESSAGE, b"a.b", b"1"),
        encode(Kind.MESSAGE, b"c", b"1", flags=Flag.BARE),
        encode(Kind.MESSAGE, b"_WEFT.PIPELINE.rates", b"1"),
        encode(Kind.MESSAGE, b"_LOCAL.x", b"1"),
    ]
    assert checked_rows(b"".join(rows), LIMIT) == 6


@pytest.mark.parametrize(
    ("frames", "error"),
    [
        (b"abc", BadFrame),
        (encode(Kind.MESSAGE, b"a", b"1")[:-1], BadFrame),
        (encode(Kind.MESSAGE, b"a", bytes(LIMIT + 1)), BadFrame),
        (encode(Kind.PING), BadFrame),
        (encode(Kind.MESSAGE, b"a", flags=Flag.ANSWER), BadFrame),
        (encode(Kind.MESSAGE, b"a", flags=Flag.REQUEST), BadFrame),
        (encode(Kind.MESSAGE, b"a..b"), BadSubject),
        (encode(Kind.MESSAGE, b""), BadSubject),
        (encode(Kind.MESSAGE, b"a", b"", b"b..c"), BadSubject),
        (encode(Kind.MESSAGE, b"_WEFT.ask.status"), Reserved),
        (encode(Kind.MESSAGE, b"_INBOX.x"), Reserved),
        (encode(Kind.MESSAGE, b"a", b"", b"_INBOX.x"), Reserved),
    ],
)
def test_others_may_not(frames: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        checked_rows(encode(Kind.MESSAGE, b"a", b"1") + frames, LIMIT)


def test_rows_are_only_those_that_their_writer_may_publish() -> None:
    rules = tuple(Rule(False, (b"a.>",), (b"a.secret",)) for _ in range(5))
    rights = Rights(rules, None)
    assert checked_rows(message(b"a.b") + message(b"a.c", reply=b"a.d"), LIMIT, rights) == 2
    for row in (message(b"a.secret"), message(b"b"), message(b"a.b", reply=b"b")):
        with pytest.raises(NotAllowed, match="may not publish to"):
            checked_rows(message(b"a.b") + row, LIMIT, rights)
