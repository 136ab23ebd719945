import pytest

from weft.journal.trusted_time import HOLD_S, SLACK_S, TrustedTime

DAY_S = 86_400.0
YEAR_S = 365 * DAY_S
WALL_S = 1_700_000_000.0


def test_time_that_passes_is_the_wall_clock() -> None:
    time = TrustedTime(WALL_S, 50.0, WALL_S - 10, DAY_S)
    assert time.now(WALL_S, 50.0) == WALL_S
    assert time.now(WALL_S + 7 * DAY_S, 50.0 + 7 * DAY_S) == WALL_S + 7 * DAY_S


def test_a_clock_that_is_set_right_is_followed() -> None:
    time = TrustedTime(WALL_S, 50.0, None, DAY_S)
    for number in range(100):
        wall_s = WALL_S + number * (60 + SLACK_S)
        assert time.now(wall_s, 50.0 + 60 * number) == wall_s


def test_a_jump_ahead_counts_after_an_hour() -> None:
    time = TrustedTime(WALL_S, 50.0, WALL_S, DAY_S)
    assert time.now(WALL_S + YEAR_S, 50.0) == WALL_S
    assert time.now(WALL_S + YEAR_S + 600, 650.0) == WALL_S + 600
    late_s = HOLD_S + 1
    assert time.now(WALL_S + YEAR_S + late_s, 50.0 + late_s) == WALL_S + YEAR_S + late_s


def test_a_jump_that_is_taken_back_leaves_no_trace() -> None:
    time = TrustedTime(WALL_S, 50.0, WALL_S, DAY_S)
    time.now(WALL_S + YEAR_S, 50.0)
    late_s = HOLD_S + 1
    assert time.now(WALL_S + late_s, 50.0 + late_s) == WALL_S + late_s
    # The next one has its own hour.
    assert time.now(WALL_S + YEAR_S, 51.0 + late_s) == WALL_S + late_s + 1


def test_a_clock_that_goes_back_is_followed() -> None:
    time = TrustedTime(WALL_S, 50.0, WALL_S, DAY_S)
    assert time.now(WALL_S - YEAR_S, 50.0) == WALL_S - YEAR_S
    assert time.now(WALL_S - YEAR_S + 60, 110.0) == WALL_S - YEAR_S + 60


def test_a_journal_that_would_be_emptied_at_the_start_has_its_hour() -> None:
    newest_s = WALL_S - YEAR_S
    time = TrustedTime(WALL_S, 50.0, newest_s, DAY_S)
    assert time.now(WALL_S, 50.0) == newest_s
    assert time.now(WALL_S + HOLD_S, 50.0 + HOLD_S) == WALL_S + HOLD_S


@pytest.mark.parametrize("keep_s", [0.0, 2 * YEAR_S])
def test_a_journal_that_keeps_its_messages_anyway_has_no_need_of_it(keep_s: float) -> None:
    time = TrustedTime(WALL_S, 50.0, WALL_S - YEAR_S, keep_s)
    assert time.now(WALL_S, 50.0) == WALL_S
