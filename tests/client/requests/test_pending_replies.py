import pytest

from weft.client.requests.pending_replies import PendingReplies
from weft.errors import Overloaded, WeftError


class Someone:
    """Whoever waits; only its being itself matters here."""

    def answered(self, frame: bytes) -> None:
        """Never here."""

    def failed(self, error: WeftError) -> None:
        """Never here."""

    def lost(self, error: WeftError) -> None:
        """Never here."""


def test_a_request_is_found_by_its_reply_until_it_is_forgotten() -> None:
    waiting, someone = PendingReplies(10), Someone()
    waiting.add_request(someone, b"r")
    assert waiting.request(b"r") is someone
    assert waiting.request(b"r") is someone
    waiting.forget(someone)
    assert waiting.request(b"r") is None
    assert len(waiting) == 0


def test_answers_of_one_name_go_to_the_questions_in_order() -> None:
    waiting = PendingReplies(10)
    first, second, other = Someone(), Someone(), Someone()
    waiting.add_question(first, (True, b"a", b""))
    waiting.add_question(other, (False, b"a", b""))
    waiting.add_question(second, (True, b"a", b""))
    assert waiting.take_question((True, b"a", b"")) is first
    assert waiting.take_question((False, b"a", b"")) is other
    assert waiting.take_question((True, b"a", b"")) is second
    assert waiting.take_question((True, b"a", b"")) is None


def test_whoever_gives_up_keeps_its_place_in_the_line() -> None:
    waiting = PendingReplies(10)
    first, second = Someone(), Someone()
    waiting.add_question(first, (True, b"a", b""))
    waiting.add_question(second, (True, b"a", b""))
    waiting.forget(first)
    assert len(waiting) == 1
    assert waiting.take_question((True, b"a", b"")) is None
    assert waiting.take_question((True, b"a", b"")) is second


def test_whoever_never_asked_leaves_no_place() -> None:
    waiting = PendingReplies(2)
    first, second, third = Someone(), Someone(), Someone()
    waiting.add_question(first, (True, b"a", b""))
    waiting.add_question(second, (True, b"a", b""))
    waiting.withdraw(second)
    waiting.add_question(third, (True, b"a", b""))
    assert waiting.take_question((True, b"a", b"")) is first
    assert waiting.take_question((True, b"a", b"")) is third
    waiting.add_question(first, (True, b"a", b""))
    waiting.withdraw(first)
    waiting.add_request(second, b"r")
    waiting.withdraw(second)
    waiting.withdraw(third)
    assert len(waiting) == 0
    assert waiting.take_question((True, b"a", b"")) is None


def test_a_ping_is_found_once_by_its_body() -> None:
    waiting, someone = PendingReplies(10), Someone()
    waiting.add_ping(someone, b"1")
    assert waiting.take_ping(b"2") is None
    assert waiting.take_ping(b"1") is someone
    assert waiting.take_ping(b"1") is None


def test_a_ping_can_be_forgotten() -> None:
    waiting, someone = PendingReplies(10), Someone()
    waiting.add_ping(someone, b"1")
    waiting.forget(someone)
    assert waiting.take_ping(b"1") is None


def test_forgetting_a_stranger_does_nothing() -> None:
    PendingReplies(10).forget(Someone())


def test_no_more_wait_than_the_limit() -> None:
    waiting = PendingReplies(3)
    waiting.add_request(Someone(), b"r")
    waiting.add_question(Someone(), (True, b"a", b""))
    waiting.add_ping(Someone(), b"1")
    with pytest.raises(Overloaded, match="limit of 3 pending replies"):
        waiting.add_request(Someone(), b"s")


def test_an_abandoned_place_counts_until_its_answer_comes() -> None:
    waiting, someone = PendingReplies(1), Someone()
    waiting.add_question(someone, (True, b"a", b""))
    waiting.forget(someone)
    with pytest.raises(Overloaded):
        waiting.add_request(Someone(), b"r")
    waiting.take_question((True, b"a", b""))
    waiting.add_request(Someone(), b"r")


def test_everybody_is_taken_at_once_and_nothing_is_left() -> None:
    waiting = PendingReplies(4)
    everybody = [Someone() for _ in range(3)]
    waiting.add_request(everybody[0], b"r")
    waiting.add_question(everybody[1], (True, b"a", b""))
    waiting.add_ping(everybody[2], b"1")
    gone = Someone()
    waiting.add_question(gone, (True, b"a", b""))
    waiting.forget(gone)
    assert waiting.take_all() == everybody
    assert len(waiting) == 0
    assert waiting.request(b"r") is None
    assert waiting.take_question((True, b"a", b"")) is None
    for number in range(4):
        waiting.add_ping(Someone(), b"%d" % number)
