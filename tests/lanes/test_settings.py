"""The settings of lanes: which rule holds, and what cannot be."""

from typing import Any

import pytest

from weft.errors import BadOption
from weft.lanes.settings import LaneRule, LaneSettings, Threshold, check_lanes


def test_the_first_rule_that_matches_holds_and_leaves_the_rest_as_it_is() -> None:
    rules = (
        LaneRule(pattern="a.b", messages_s=5.0, hold_s=1.0),
        LaneRule(pattern="a.>", enabled=False, bytes_s=7.0),
    )
    settings = LaneSettings(rules=rules)
    assert settings.threshold(b"a.b") == Threshold(True, 5.0, 1_000_000.0, 1.0)
    assert settings.threshold(b"a.c") == Threshold(False, 1000.0, 7.0, 2.0)
    assert settings.threshold(b"c") == Threshold(True, 1000.0, 1_000_000.0, 2.0)
    assert not LaneSettings(enabled=False, rules=rules).threshold(b"a.b").enabled


def test_a_rule_of_a_service_holds_there_and_nowhere_else() -> None:
    rules = (
        LaneRule(service="weather", messages_s=5.0),
        LaneRule(pattern="a.>", enabled=False),
    )
    settings = LaneSettings(rules=rules)
    assert settings.of("weather").threshold(b"a.b").messages_s == 5.0
    assert settings.of("weather").threshold(b"a.b").enabled
    assert settings.of("other").threshold(b"a.b").messages_s == 1000.0
    assert not settings.of("other").threshold(b"a.b").enabled


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"low": 1.5}, r"lanes\.low is 1\.5"),
        ({"receivers": 9}, r"lanes\.receivers is 9; it must be 1 … 8"),
        ({"rules": (LaneRule(pattern="a..b"),)}, r"lanes\.rules: 'a\.\.b'"),
        ({"rules": (LaneRule(pattern="a", hold_s=0.0),)}, r"lanes\.rules: hold_s is 0"),
        ({"rules": (LaneRule(pattern="a", bytes_s=float("nan")),)}, r"lanes\.rules: bytes_s"),
    ],
)
def test_what_cannot_be_is_named(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(BadOption, match=text):
        check_lanes(LaneSettings(**settings))


def test_the_defaults_and_full_rules_are_sound() -> None:
    rule = LaneRule(pattern="a.>", enabled=True, messages_s=1.0, bytes_s=1.0, hold_s=1.0)
    check_lanes(LaneSettings(rules=(rule,)))
