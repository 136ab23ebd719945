from collections.abc import Iterator

import pytest

from weft.errors import NotYours, TooMany, UsageError
from weft.transports.middleman.request_ids import Given, PendingRequest, RequestIds

INBOX = b"_INBOX.1.2."


def tokens() -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"token{number}"


@pytest.fixture
def ids() -> RequestIds:
    return RequestIds(INBOX, tokens().__next__)


def asked(request_id: str, time_ns: int = 0) -> PendingRequest:
    return PendingRequest("weather", request_id, time_ns)


def test_an_answer_finds_its_request_once(ids: RequestIds) -> None:
    first, second = ids.ask(asked("1"), 9), ids.ask(asked("2"), 9)
    assert first != second
    assert first.startswith(INBOX)
    assert ids.answered(second) == asked("2")
    assert ids.answered(second) is None
    assert ids.answered(first) == asked("1")
    assert len(ids) == 0


def test_an_answer_that_nobody_waits_for_is_for_none(ids: RequestIds) -> None:
    assert ids.answered(b"") is None
    assert ids.answered(INBOX + b"1") is None


def test_a_request_id_is_used_again_only_when_it_was_answered(ids: RequestIds) -> None:
    reply = ids.ask(asked("1"), 9)
    with pytest.raises(UsageError, match="ReqID '1' waits"):
        ids.ask(asked("1"), 9)
    ids.answered(reply)
    assert ids.ask(asked("1"), 9) != reply


def test_many_may_wait_that_have_no_request_id(ids: RequestIds) -> None:
    replies = {ids.ask(asked(""), 9), ids.ask(asked(""), 9)}
    assert [ids.answered(reply) for reply in replies] == [asked(""), asked("")]


def test_no_more_may_wait_than_the_limit(ids: RequestIds) -> None:
    ids.ask(asked("1"), 1)
    with pytest.raises(TooMany, match="1 requests wait"):
        ids.ask(asked("2"), 1)
    assert ids.ask(asked("2"), 2)


@pytest.mark.req("MID-11")
def test_a_stand_in_is_good_for_one_answer(ids: RequestIds) -> None:
    stand_in = ids.give(Given(b"_INBOX.3.4.1", 0), 9)
    assert stand_in == "token1"
    assert ids.answer(stand_in) == b"_INBOX.3.4.1"
    with pytest.raises(NotYours, match="'token1'"):
        ids.answer(stand_in)


@pytest.mark.req("MID-11")
def test_a_stand_in_is_good_for_whoever_was_given_it(ids: RequestIds) -> None:
    stand_in = RequestIds(INBOX, tokens().__next__).give(Given(b"_INBOX.3.4.1", 0), 9)
    with pytest.raises(NotYours):
        ids.answer(stand_in)


def test_of_too_many_that_were_given_the_oldest_ends(ids: RequestIds) -> None:
    first, second, third = (ids.give(Given(b"%d" % number, 0), 2) for number in range(3))
    with pytest.raises(NotYours):
        ids.answer(first)
    assert [ids.answer(second), ids.answer(third)] == [b"1", b"2"]


def test_both_end_with_the_life_of_a_request(ids: RequestIds) -> None:
    reply = ids.ask(asked("1", 10), 9)
    ids.ask(asked("2", 20), 9)
    old, new = ids.give(Given(b"old", 10), 9), ids.give(Given(b"new", 20), 9)
    assert ids.expire(10) == []
    assert ids.expire(20) == [asked("1", 10)]
    assert ids.expire(20) == []
    assert ids.answered(reply) is None
    assert ids.ask(asked("1", 30), 9)
    with pytest.raises(NotYours):
        ids.answer(old)
    assert ids.answer(new) == b"new"
