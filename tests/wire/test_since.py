from datetime import UTC, datetime
from typing import Any

import pytest

from weft.errors import BadOption
from weft.wire.since import beginning, since_from

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("since", "asked"),
    [
        (0, {"position": 0}),
        (NOON, {"time": NOON}),
        ("90s", {"ago": 90.0}),
        ("1.5h", {"ago": 5400.0}),
        ("200ms", {"ago": 0.2}),
    ],
)
def test_a_beginning_is_asked_for_by_position_time_or_age(since: Any, asked: object) -> None:
    assert beginning(since) == asked


@pytest.mark.parametrize("since", [-1, True, "soon", "5", "5 m", datetime(2026, 1, 31), 1.5])
def test_what_is_no_beginning_is_refused(since: Any) -> None:
    with pytest.raises(BadOption, match="since"):
        beginning(since)


@pytest.mark.parametrize(
    ("text", "since"), [("5m", "5m"), ("17", 17), ("2026-01-31T12:00:00Z", NOON)]
)
def test_a_text_says_the_same(text: str, since: object) -> None:
    assert since_from(text) == since


@pytest.mark.parametrize("text", ["", "soon", "-3", "2026-01-31T12:00:00", "1" * 30])
def test_a_text_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(BadOption, match="since"):
        since_from(text)
