import msgspec
import pytest
from benchmarks.peers.table import lines, shown
from tests.benchmarks.peers.reports import PEERS, report


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12_345_678, "12.3 M"),
        (999_499, "999 k"),
        (9_999, "9,999"),
        (123.4, "123"),
        (12.34, "12.3"),
        (0.0567, "0.0567"),
        (0.5, "0.500"),
        (0, "0.00"),
    ],
)
def test_figures_have_three_digits_that_matter(value: float, text: str) -> None:
    assert shown(value) == text


def test_a_line_has_every_peer_and_the_ratio_to_the_reference() -> None:
    line = next(line for line in lines(report()) if "CPU µs each" in line)
    assert line.split() == [
        *("CPU", "µs", "each"),
        *("0.200", "(0.150…0.300)"),
        *("0.500", "(0.450…0.650)"),
        *("2.00", "failed", "[1]"),
        "0.50×",
    ]


def test_a_failure_is_explained_below() -> None:
    assert "[1] one, redis 7: failed in 2 of 3 rounds: it stalled" in lines(report())


def test_a_window_of_its_own_is_said() -> None:
    assert "one, redis 7: only 3 in flight" in lines(report())


def test_settings_and_machine_are_said() -> None:
    text = "\n".join(lines(report()))
    assert "redis 7: nothing saved" in text
    assert "abacus, 2 cores, Linux 6.1" in text


def test_without_the_reference_there_is_no_ratio() -> None:
    alone = msgspec.structs.replace(report(), peers=PEERS[:1], measurements=[])
    assert not any("×" in line for line in lines(alone))


def test_a_unit_that_a_spread_shares_is_said_once() -> None:
    line = next(line for line in lines(report()) if "per second" in line)
    assert "5.00 M (3.75…7.50)" in line
