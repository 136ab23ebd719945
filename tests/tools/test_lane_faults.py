"""The parts of the tool that breaks lanes: what receivers note, and what is made of it."""

import pytest
from tools.lane_faults.judge import (
    DOUBLED,
    LOST,
    MISORDERED,
    UNTRUE,
    Break,
    Speech,
    Verdict,
    judged,
)
from tools.lane_faults.notes import Heard, Missed, Said, Session, read
from tools.lane_faults.publisher import kind_of

A, B = "hot.a", "hot.b"


def speech(count: int) -> Speech:
    """One that says as much to each of two subjects, in turn, each at its own moment."""
    said = Speech(0)
    said.times_ns[A] = list(range(1, 2 * count, 2))
    said.times_ns[B] = list(range(2, 2 * count + 1, 2))
    return said


def heard(*numbers: int, connection: str = "1.1") -> list[Heard | Missed]:
    """Messages by their numbers in all that was said."""
    found: list[Heard | Missed] = []
    for number in numbers:
        subject = A if number % 2 else B
        said = Said(0, number, subject, (number + 1) // 2)
        found.append(Heard(said, connection, is_direct=number > 2))
    return found


def verdict_on(
    events: list[Heard | Missed],
    *,
    ready_ns: int = 0,
    is_complete: bool = True,
    breaks: tuple[Break, ...] = (),
) -> Verdict:
    session = Session("one", frozenset((A, B)), ready_ns)
    session.events = events
    session.is_complete = is_complete
    said = speech(3)
    said.breaks += breaks
    return judged({0: said}, [session])


def test_all_that_was_said_in_order_is_right() -> None:
    verdict = verdict_on(heard(1, 2, 3, 4, 5, 6))
    assert verdict.violations == []
    assert (verdict.said, verdict.by_lanes, verdict.relayed) == (6, 4, 2)


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        ((1, 2, 3, 3, 4, 5, 6), DOUBLED),
        ((1, 3, 2, 4, 5, 6), MISORDERED),
        ((1, 2, 4, 5, 6), LOST),
        ((2, 3, 4, 5, 6), LOST),
        ((1, 2, 3, 4, 5), LOST),
    ],
)
def test_what_must_not_be_is_found(numbers: tuple[int, ...], kind: str) -> None:
    assert set(verdict_on(heard(*numbers)).kinds()) == {kind}


def test_a_message_that_comes_again_to_the_next_subscription_is_doubled() -> None:
    sessions = [Session("one", frozenset((A, B)), 0) for _ in range(2)]
    for session in sessions:
        session.events = heard(1)
    assert judged({0: speech(1)}, sessions).kinds() == {DOUBLED: 1}


def test_what_was_said_before_a_subscription_comes_without_holes_or_not_at_all() -> None:
    assert verdict_on(heard(1, 2, 5, 6), ready_ns=4).kinds() == {LOST: 2}
    assert verdict_on(heard(3, 4, 5, 6), ready_ns=4).violations == []
    assert verdict_on(heard(5, 6), ready_ns=4).violations == []


def test_whoever_came_late_or_left_early_is_owed_only_what_lies_between() -> None:
    assert verdict_on(heard(3, 4, 5, 6), ready_ns=2).violations == []
    assert verdict_on(heard(1, 2, 3), is_complete=False).violations == []


def test_what_was_said_after_it_was_confirmed_is_owed() -> None:
    assert verdict_on(heard(4, 5, 6), ready_ns=2).kinds() == {LOST: 1}


def test_a_loss_is_excused_where_it_was_announced_and_nowhere_else() -> None:
    told: list[Heard | Missed] = [Missed("lost", 1)]
    announced = verdict_on(heard(1, 2) + told + heard(4, 5, 6))
    assert announced.violations == []
    assert (announced.told, announced.missing_announced) == (1, 1)
    assert verdict_on(told + heard(1, 2, 4, 5, 6)).kinds() == {LOST: 1}


def test_no_more_may_be_lost_than_was_announced() -> None:
    told: list[Heard | Missed] = [Missed("lost", 1)]
    assert verdict_on(heard(1, 2) + told + heard(5, 6)).kinds() == {UNTRUE: 1}


def test_a_loss_is_excused_if_its_publisher_was_cut_off_when_it_had_said_it() -> None:
    cut_off = Break({A: 1}, {A: 2})
    verdict = verdict_on(heard(1, 2, 4, 5, 6), breaks=(cut_off,))
    assert verdict.violations == []
    assert verdict.missing_at_breaks == 1
    confirmed = Break({A: 2}, {A: 3})
    assert verdict_on(heard(1, 2, 4, 5, 6), breaks=(confirmed,)).kinds() == {LOST: 1}


def test_each_connection_of_a_publisher_has_an_order_of_its_own() -> None:
    assert verdict_on([*heard(3, 4, connection="1.2"), *heard(1, 2)]).kinds()[MISORDERED] == 0


def test_notes_are_read_as_far_as_they_were_written() -> None:
    text = "g 0 1 hot.a 1 1.7\nr 5 hot.a hot.b\nl 0 2 hot.b 1 1.7\nm 3 lost\nc\n"
    text += "u\ng 0 3 hot.a 2 1.7\nr 9 hot.a\ng 0 5 ho"
    first, second = read("one", text)
    assert first.events == [*heard_by("g", 1), *heard_by("l", 2), Missed("lost", 3)]
    assert first.subjects == {A, B}
    assert (first.ready_ns, first.is_complete) == (5, True)
    assert second.events == [Heard(Said(0, 3, A, 2), "1.7", is_direct=False)]
    assert not second.is_complete


def heard_by(way: str, number: int) -> list[Heard]:
    subject = A if number % 2 else B
    return [Heard(Said(0, number, subject, 1), "1.7", way == "l")]


def test_reasons_are_counted_by_their_kind() -> None:
    one = kind_of("the lane to receiver.3 was lost: connection ended")
    assert one == kind_of("the lane to receiver.12 was lost: connection ended")
    assert (
        kind_of("receiver.1 acknowledged nothing for 3.2 s")
        == "receiver acknowledged nothing for …"
    )
