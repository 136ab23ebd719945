import pytest

from weft.mesh.channels.leases import CONFIRMED, CONTESTED, FAILED, OUTDATED
from weft.mesh.channels.open_vote import (
    ATTEMPTS_MAX,
    EXISTS,
    WAIT_NS,
    Electorate,
    End,
    Opening,
)
from weft.mesh.channels.protocol import Record

OPEN = Record(b"room", b"o" * 16, 1)
PROTECTED = OPEN._replace(stored=b"k" * 32, server=b"s" * 32)


def opening(record: Record, *asked: int, majority: int = 2, own: str = CONFIRMED) -> Opening:
    made = Opening(record, 0, lambda _opening, _end: None)
    made.begin(record, b"i" * 16, Electorate(frozenset(asked), majority), own)
    return made


@pytest.mark.req("RLY-11")
def test_a_protected_channel_opens_with_more_than_half() -> None:
    made = opening(PROTECTED, 1, 2)
    assert made.end(1) is None
    made.hear(1, CONFIRMED, 0)
    assert made.end(1) is End.OPENED
    assert (made.confirmed, made.silent) == ([1], [2])


@pytest.mark.req("RLY-15")
def test_a_protected_channel_does_not_open_without_them_when_time_is_up() -> None:
    made = opening(PROTECTED, 1, 2)
    assert made.end(WAIT_NS - 1) is None
    assert made.end(WAIT_NS) is End.NO_MAJORITY


def test_a_protected_channel_does_not_wait_for_what_cannot_be_any_more() -> None:
    made = opening(PROTECTED, 1, majority=3)
    assert made.end(1) is End.NO_MAJORITY


@pytest.mark.req("RLY-15")
def test_a_channel_without_a_password_opens_although_some_are_silent() -> None:
    made = opening(OPEN, 1, 2)
    made.hear(1, CONFIRMED, 0)
    assert made.end(WAIT_NS - 1) is None
    assert made.end(WAIT_NS) is End.OPENED
    assert made.silent == [2]


@pytest.mark.parametrize("record", [OPEN, PROTECTED])
def test_who_knows_such_a_channel_ends_it(record: Record) -> None:
    made = opening(record, 1, 2, 3, majority=3)
    made.hear(1, CONFIRMED, 0)
    made.hear(2, EXISTS, 0)
    assert made.end(1) is End.EXISTS


@pytest.mark.parametrize("record", [OPEN, PROTECTED])
def test_a_contested_name_is_nobodys(record: Record) -> None:
    made = opening(record, 1, 2)
    made.hear(1, CONTESTED, 4)
    made.hear(2, OUTDATED, 3)
    assert made.end(1) is End.CONTESTED
    assert made.epoch == 4


@pytest.mark.parametrize("record", [OPEN, PROTECTED])
def test_a_later_epoch_is_tried_a_few_times(record: Record) -> None:
    made = opening(record, 1)
    made.hear(1, OUTDATED, 9)
    assert made.end(1) is End.OUTDATED
    assert made.epoch == 9
    for _ in range(ATTEMPTS_MAX - 1):
        made.begin(record, b"i" * 16, Electorate(frozenset({1}), 2), CONFIRMED)
        made.hear(1, OUTDATED, 9)
    assert made.end(1) is End.CONTESTED


def test_only_the_first_answer_of_those_who_were_asked_counts() -> None:
    made = opening(PROTECTED, 1, 2, majority=3)
    made.hear(9, CONFIRMED, 5)
    made.hear(1, CONFIRMED, 0)
    made.hear(1, CONTESTED, 0)
    assert made.end(1) is None
    assert made.epoch == 0


def test_what_this_gateway_cannot_promise_itself_is_not_opened() -> None:
    made = opening(PROTECTED, 1, 2, own=FAILED)
    made.hear(1, CONFIRMED, 0)
    made.hear(2, CONFIRMED, 0)
    assert made.end(1) is End.NO_MAJORITY
    assert opening(PROTECTED, own=CONTESTED).end(1) is End.CONTESTED
