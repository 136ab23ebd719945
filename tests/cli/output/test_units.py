import pytest

from weft.cli.output.units import duration, latency, rate, short


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (7, "7"),
        (7.54, "7.5"),
        (9.96, "10"),
        (999, "999"),
        (999.4, "999"),
        (999.6, "1 k"),
        (1_240, "1.2 k"),
        (12_400, "12 k"),
        (999_999, "1 M"),
        (3_400_000_000, "3.4 G"),
        (-1_240, "-1.2 k"),
        (1e22, "10000 E"),
    ],
)
def test_a_number_is_shown_with_few_digits(value: float, text: str) -> None:
    assert short(value) == text


def test_a_unit_stands_behind_its_step() -> None:
    assert short(1_500_000, "B") == "1.5 MB"
    assert short(12, "B") == "12 B"


def test_a_rate_is_of_a_second() -> None:
    assert rate(1_240_000) == "1.2 M/s"
    assert rate(1_240_000, "B") == "1.2 MB/s"
    assert rate(0) == "0/s"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.9, "59 s"),
        (125, "2 min 5 s"),
        (3_600, "1 h"),
        (3_605, "1 h"),
        (100_000, "1 d 3 h"),
    ],
)
def test_a_duration_is_shown_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.000_085, "85 µs"),
        (0.000_000_4, "0.4 µs"),
        (0.000_999_9, "1 ms"),
        (0.001_26, "1.3 ms"),
        (0.999_9, "1 s"),
        (2, "2 s"),
    ],
)
def test_a_latency_is_shown_in_the_unit_that_fits(seconds: float, text: str) -> None:
    assert latency(seconds) == text
