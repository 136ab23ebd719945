from weft.core.tickets import TICKET_LIFE_NS, Tickets


def test_a_ticket_stands_for_its_key_once() -> None:
    tickets = Tickets()
    tickets.add("t", "abcd0000", 5)
    assert tickets.take("t", 6) == "abcd0000"
    assert tickets.take("t", 6) is None


def test_a_ticket_that_was_never_made_stands_for_nothing() -> None:
    assert Tickets().take("t", 0) is None
    assert Tickets().take("\ud800", 0) is None


def test_a_ticket_is_good_for_a_while_and_no_longer() -> None:
    tickets = Tickets()
    tickets.add("early", "a", 0)
    tickets.add("late", "a", 0)
    assert tickets.take("early", TICKET_LIFE_NS) == "a"
    assert tickets.take("late", TICKET_LIFE_NS + 1) is None


def test_of_too_many_the_oldest_gives_way() -> None:
    tickets = Tickets(limit=2)
    for text in "abc":
        tickets.add(text, text, 0)
    assert len(tickets) == 2
    assert [tickets.take(text, 0) for text in "abc"] == [None, "b", "c"]


def test_tickets_that_nobody_used_do_not_stay() -> None:
    tickets = Tickets()
    for text in "abc":
        tickets.add(text, text, 0)
    tickets.add("d", "d", TICKET_LIFE_NS + 1)
    assert len(tickets) == 1
