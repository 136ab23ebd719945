import pytest

from weft.broker.auth.tickets import TICKET_LIFE_NS, Tickets
from weft.broker.limits import Limits
from weft.errors import TooMany

LIMITS = Limits()


def test_a_ticket_stands_for_its_key_once() -> None:
    tickets = Tickets()
    tickets.add("t", "abcd0000", 5, LIMITS)
    assert tickets.take("t", 6) == "abcd0000"
    assert tickets.take("t", 6) is None


def test_a_ticket_that_was_never_made_stands_for_nothing() -> None:
    assert Tickets().take("t", 0) is None
    assert Tickets().take("\ud800", 0) is None


def test_a_ticket_is_good_for_a_while_and_no_longer() -> None:
    tickets = Tickets()
    tickets.add("early", "a", 0, LIMITS)
    tickets.add("late", "a", 0, LIMITS)
    assert tickets.take("early", TICKET_LIFE_NS) == "a"
    assert tickets.take("late", TICKET_LIFE_NS + 1) is None


def test_of_too_many_the_newest_is_refused_and_the_others_stay_good() -> None:
    tickets = Tickets(limit=2)
    tickets.add("a", "one", 0, LIMITS)
    tickets.add("b", "two", 0, LIMITS)
    with pytest.raises(TooMany, match="2 tickets are unused, which is the limit"):
        tickets.add("c", "three", 0, LIMITS)
    assert [tickets.take(text, 0) for text in "abc"] == ["one", "two", None]
    tickets.add("c", "three", 0, LIMITS)


def test_a_key_with_its_share_of_tickets_pushes_out_nobody() -> None:
    tickets = Tickets(limit=8)
    tickets.add("mine", "honest", 0, LIMITS)
    for number in range(4):
        tickets.add(str(number), "greedy", 0, LIMITS)
    with pytest.raises(
        TooMany, match=r"this key has 4 unused tickets, which is its share of 8: see limits.share"
    ):
        tickets.add("4", "greedy", 0, LIMITS)
    assert tickets.take("mine", 0) == "honest"
    # One that was used, and those that are too old, make room.
    assert tickets.take("0", 0) == "greedy"
    tickets.add("5", "greedy", 1, LIMITS)
    for number in range(6, 10):
        tickets.add(str(number), "greedy", TICKET_LIFE_NS + 2, LIMITS)


def test_tickets_that_nobody_used_do_not_stay() -> None:
    tickets = Tickets()
    for text in "abc":
        tickets.add(text, text, 0, LIMITS)
    tickets.add("d", "d", TICKET_LIFE_NS + 1, LIMITS)
    assert len(tickets) == 1
