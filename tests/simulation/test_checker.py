"""The checker is checked: whatever is done to a correct history must be found."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulation.told import MESSAGES, SECOND, correct

from weft.simulation import checker
from weft.simulation.checker import check
from weft.simulation.history import (
    DeliveryRecord,
    GapRecord,
    History,
    LinkRecord,
    RequestRecord,
    Round,
    SubscriberRecord,
)

GAP = GapRecord(1, 1, SECOND)


def kinds(history: History) -> list[str]:
    return sorted({violation.kind for violation in check(history).violations})


def plain(history: History) -> SubscriberRecord:
    """A subscriber of another gateway that heard everything."""
    return history.sessions[0]


def test_a_correct_history_has_no_violations() -> None:
    verdict = check(correct())
    assert verdict.violations == []
    assert (verdict.published, verdict.announced, verdict.gaps) == (2 * MESSAGES, 0, 0)
    assert verdict.owed == verdict.heard - MESSAGES
    assert verdict.converged_ns == 2 * SECOND


# Messages that get lost.


@given(st.integers(0, 2 * MESSAGES - 2))
def test_a_message_that_is_dropped_is_found(at: int) -> None:
    history = correct()
    del plain(history).events[at]
    assert kinds(history) == [checker.LOST]


def test_a_last_message_that_is_dropped_is_found() -> None:
    history = correct()
    plain(history).events.pop()
    assert kinds(history) == [checker.LOST]


@given(st.integers(0, 2 * MESSAGES - 1))
def test_a_gap_in_its_place_announces_a_loss(at: int) -> None:
    history = correct()
    lost = plain(history).events[at]
    plain(history).events[at] = GapRecord(lost.origin, 1, SECOND)
    verdict = check(history)
    assert verdict.violations == []
    assert verdict.announced == 1


@given(st.integers(1, 2 * MESSAGES - 1))
def test_a_gap_of_any_gateway_announces_a_loss(at: int) -> None:
    history = correct()
    plain(history).events[at] = GapRecord(0, 1, SECOND)
    assert kinds(history) == []


def test_a_gap_of_another_gateway_announces_nothing() -> None:
    history = correct()
    plain(history).events[4] = GapRecord(9, 1, SECOND)
    assert kinds(history) == [checker.LOST]


@pytest.mark.parametrize("place", [0, 3, 7])
def test_a_gap_in_another_place_announces_nothing(place: int) -> None:
    history = correct()
    events = plain(history).events
    lost = events.pop(4)
    # Every second message is of the same gateway: the place is before 2, or after 6.
    events.insert(place, GapRecord(lost.origin, 1, SECOND))
    is_near = 2 < place <= 5
    assert kinds(history) == ([] if is_near else [checker.LOST])


def test_a_gap_that_counts_too_few_is_found() -> None:
    history = correct()
    events = plain(history).events
    del events[8], events[6]
    events.insert(6, GAP)
    verdict = check(history)
    assert [violation.kind for violation in verdict.violations] == [checker.LOST]
    assert verdict.announced == 1


def test_a_gap_of_unknown_size_announces_everything_in_its_place() -> None:
    history = correct()
    events = plain(history).events
    del events[8], events[6]
    events.insert(6, GapRecord(1, 0, SECOND))
    assert check(history).announced == 2
    assert kinds(history) == []


def test_what_was_published_before_the_subscription_was_known_is_not_owed() -> None:
    history = correct()
    for at in (0, 1):
        reach = dict.fromkeys(history.published[at].reach or {}, 0)
        history.published[at] = msgspec.structs.replace(history.published[at], reach=reach)
    del plain(history).events[:2]
    assert kinds(history) == []


def test_a_subscription_that_is_forgotten_is_a_loss() -> None:
    history = correct()
    history.published[6] = msgspec.structs.replace(history.published[6], reach={})
    del plain(history).events[6]
    assert kinds(history) == [checker.LOST]


@pytest.mark.parametrize(
    ("gap", "found"),
    [
        (GapRecord(7, 0, 99 * SECOND), []),
        (GapRecord(7, 0, SECOND), [checker.LOST]),
        (GapRecord(7, 9, 99 * SECOND), [checker.LOST]),
        (GapRecord(8, 0, 99 * SECOND), [checker.LOST]),
    ],
)
def test_the_end_of_an_earlier_life_announces_one_that_was_never_seen(
    gap: GapRecord, found: list[str]
) -> None:
    history = correct()
    history.lives = {1: 7, 7: 0, 8: 0}
    session = plain(history)
    session.events = [event for event in session.events if event.origin != 1]
    session.events.append(gap)
    assert kinds(history) == found


def test_the_end_of_an_earlier_life_announces_nothing_of_one_that_was_heard() -> None:
    history = correct()
    history.lives = {1: 7, 7: 0}
    plain(history).events[4] = GapRecord(7, 0, 99 * SECOND)
    assert kinds(history) == [checker.LOST]


def test_whoever_left_is_not_owed_the_last_messages() -> None:
    history = correct()
    session = plain(history)
    session.ended_ns = 100 * SECOND
    del session.events[-2:]
    assert kinds(history) == []


def test_whoever_left_is_owed_what_came_before_the_last_that_it_heard() -> None:
    history = correct()
    session = plain(history)
    session.ended_ns = 100 * SECOND
    del session.events[4]
    assert kinds(history) == [checker.LOST]


def counter(event: DeliveryRecord | GapRecord) -> int:
    return event.counter if isinstance(event, DeliveryRecord) else 0


def late(history: History, known: int) -> SubscriberRecord:
    """Have the far subscriber be known only from a message of gateway 1 on."""
    for at, each in enumerate(history.published):
        if each.counter < known:
            history.published[at] = msgspec.structs.replace(each, reach={})
    return plain(history)


def test_before_it_is_known_a_subscription_is_owed_nothing() -> None:
    history = correct()
    session = late(history, 4)
    session.events = [each for each in session.events if counter(each) >= 4]
    assert kinds(history) == []


def test_a_stream_that_has_begun_has_no_holes_whatever_is_known() -> None:
    """Another heard what was on its way to one that left, and then nothing until it was known."""
    history = correct()
    session = late(history, 4)
    session.events = [each for each in session.events if counter(each) not in {2, 3}]
    assert len(check(history).violations) == 4
    assert kinds(history) == [checker.LOST]


def test_a_message_that_another_pattern_may_have_brought_begins_no_stream() -> None:
    history = correct()
    session = late(history, 4)
    history.sessions = [session]
    session.patterns = ("data.>", "data.1")
    session.events = [each for each in session.events if counter(each) >= 4 or each.origin == 1]
    # The third of gateway 1.
    history.published[4] = msgspec.structs.replace(history.published[4], subject="data.2")
    del session.events[2]
    assert kinds(history) == []
    session.patterns = ("data.>",)
    assert kinds(history) == [checker.LOST]


# Histories of real processes know less.


def blind(history: History) -> History:
    """The same, as somebody knows it who cannot look into gateways."""
    history.published = [
        msgspec.structs.replace(each, reach=None, sequence=0) for each in history.published
    ]
    return history


def test_a_history_from_outside_has_no_violations() -> None:
    assert kinds(blind(correct())) == []


def test_from_outside_what_was_heard_of_one_subject_says_nothing_of_another() -> None:
    """Somebody else at the same gateway may have asked for the one, and nobody for the other."""
    history = blind(correct())
    for at in (3, 9):
        history.published[at] = msgspec.structs.replace(history.published[at], subject="data.b")
    del plain(history).events[3]
    assert kinds(history) == []
    del plain(history).events[8]
    assert kinds(history) == []
    history.published[5] = msgspec.structs.replace(history.published[5], subject="data.b")
    assert kinds(history) == [checker.LOST]


@given(st.integers(2, 2 * MESSAGES - 1))
def test_a_loss_is_found_from_outside(at: int) -> None:
    history = blind(correct())
    del plain(history).events[at]
    assert kinds(history) == [checker.LOST]


def test_a_gap_is_found_from_outside() -> None:
    history = blind(correct())
    plain(history).events[4] = GAP
    assert kinds(history) == []


def test_what_came_before_the_first_that_was_heard_is_not_owed_from_outside() -> None:
    history = blind(correct())
    del plain(history).events[:4]
    assert kinds(history) == []


# Messages that come otherwise than they should.


@given(st.integers(0, 2 * MESSAGES - 1), st.integers(0, 2 * MESSAGES))
def test_a_message_that_comes_twice_is_found(at: int, place: int) -> None:
    history = correct()
    events = plain(history).events
    events.insert(place, events[at])
    assert checker.DOUBLED in kinds(history)


@given(st.integers(0, 2 * MESSAGES - 3), st.integers(1, MESSAGES))
def test_a_message_that_overtakes_is_found(at: int, far: int) -> None:
    history = correct()
    events = plain(history).events
    # Every second message is of the same publisher.
    late = min(at + 2 * far, len(events) - 2 + at % 2)
    events.insert(late, events.pop(at))
    assert kinds(history) == [checker.MISORDERED]


def test_a_message_that_nobody_published_is_found() -> None:
    history = correct()
    plain(history).events.append(DeliveryRecord("p@1", 999, 1, 999, SECOND))
    assert kinds(history) == [checker.INVENTED]


def test_a_message_that_was_not_asked_for_is_found() -> None:
    history = correct()
    history.published[3] = msgspec.structs.replace(history.published[3], subject="other")
    assert checker.UNWANTED in kinds(history)


# Groups, requests, ways.


def members(history: History) -> list[SubscriberRecord]:
    return [session for session in history.sessions if session.group]


def test_a_message_that_two_members_get_is_found() -> None:
    history = correct()
    one, other = members(history)
    other.events.append(one.events[-1])
    assert kinds(history) == [checker.GROUP_DOUBLED]


def lose_one(history: History) -> None:
    members(history)[0].events.pop(1)


def test_a_message_that_no_member_gets_is_found() -> None:
    history = correct()
    lose_one(history)
    assert kinds(history) == [checker.GROUP_LOST]


def tell_a_member(history: History) -> None:
    members(history)[1].events.append(GAP)


def end_a_member(history: History) -> None:
    members(history)[1].ended_ns = 99 * SECOND


@pytest.mark.parametrize(("excuse", "announced"), [(tell_a_member, 1), (end_a_member, 0)])
def test_a_group_may_be_told_of_a_loss_or_lose_a_member(
    excuse: Callable[[History], None], announced: int
) -> None:
    history = correct()
    lose_one(history)
    excuse(history)
    verdict = check(history)
    assert verdict.violations == []
    assert (verdict.announced, verdict.left_with) == (announced, 1 - announced)


def test_a_member_that_left_before_and_was_known_to_have_is_no_excuse() -> None:
    history = correct()
    lose_one(history)
    members(history)[1].ended_ns = 1
    for at, each in enumerate(history.published):
        reach = {number: 1 for number in each.reach or {} if number != 4}
        history.published[at] = msgspec.structs.replace(each, reach=reach)
    assert checker.GROUP_LOST in kinds(history)


def forget_reach(history: History) -> None:
    for at, each in enumerate(history.published):
        history.published[at] = msgspec.structs.replace(each, reach=None)


def test_where_no_reach_is_known_what_no_member_gets_is_found_too() -> None:
    history = correct()
    lose_one(history)
    forget_reach(history)
    assert kinds(history) == [checker.GROUP_LOST]


def test_where_no_reach_is_known_a_group_is_owed_nothing_before_the_first_that_it_got() -> None:
    history = correct()
    forget_reach(history)
    # The first message of the group, and so far the only one.
    members(history)[1].events.pop(0)
    assert kinds(history) == []


@pytest.mark.parametrize(("before_s", "found"), [(9, []), (11, [checker.GROUP_LOST])])
def test_where_no_reach_is_known_a_member_that_left_lately_is_an_excuse(
    before_s: int, found: list[str]
) -> None:
    history = correct()
    lose_one(history)
    forget_reach(history)
    lost = history.published[2 * 3]
    history.published[2 * 3] = msgspec.structs.replace(lost, time_ns=20 * SECOND)
    members(history)[1].ended_ns = (20 - before_s) * SECOND
    assert kinds(history) == found


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (RequestRecord("q", 1, 0, answers=1), []),
        (RequestRecord("q", 1, 0, refusals=1), []),
        (RequestRecord("q", 1, 0, is_given_up=True), []),
        (RequestRecord("q", 1, 0), [checker.UNANSWERED]),
        (RequestRecord("q", 1, 0, answers=2), [checker.ANSWERED_TWICE]),
        (RequestRecord("q", 1, 0, refusals=2), [checker.ANSWERED_TWICE]),
        (RequestRecord("q", 1, 0, answers=1, refusals=1), []),
    ],
)
def test_a_request_ends_once(asked: RequestRecord, found: list[str]) -> None:
    history = correct()
    history.asked.append(asked)
    assert kinds(history) == found


@pytest.mark.parametrize(
    ("passage", "found"),
    [
        (LinkRecord(1, 2, 1, (1, 3, 1, 2)), [checker.LOOPED]),
        (LinkRecord(1, 2, 1, (1, 3, 2)), [checker.LOOPED]),
        (LinkRecord(1, 2, 1, (1, 3, 2), is_again=True), []),
        (LinkRecord(1, 3, 1, (1, 2)), []),
        (LinkRecord(1, 2, 99, (1, 2)), []),
    ],
)
def test_a_message_that_passes_a_gateway_twice_is_found(
    passage: LinkRecord, found: list[str]
) -> None:
    history = correct()
    history.passages.append(passage)
    assert kinds(history) == found


# Convergence.


def miss_a_probe(history: History) -> None:
    for each in history.rounds:
        del each.heard_ns[-1:]


def disagree(history: History) -> None:
    history.agreed_ns = -1


def agree_late(history: History) -> None:
    history.agreed_ns = history.calm_ns + history.patience_ns + 1


def hear_late(history: History) -> None:
    late_ns = history.calm_ns + history.patience_ns + 1
    history.rounds = [Round(each.time_ns, each.expected, [late_ns] * 4) for each in history.rounds]


@pytest.mark.parametrize("spoil", [miss_a_probe, disagree, agree_late, hear_late])
def test_a_mesh_that_does_not_come_together_is_found(spoil: Callable[[History], None]) -> None:
    history = correct()
    spoil(history)
    assert kinds(history) == [checker.NOT_CONVERGED]


def test_a_history_survives_json() -> None:
    history = correct()
    plain(history).events.append(GAP)
    said = msgspec.json.encode(history)
    assert msgspec.json.decode(said, type=History) == history
