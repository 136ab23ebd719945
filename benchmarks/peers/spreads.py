"""Middles, spreads and ratios of what was measured in several rounds."""

import statistics
from collections.abc import Sequence

from benchmarks.peers.report import Measurement, Report, Spread


def spread_of(values: Sequence[float]) -> Spread:
    """The median and the quartiles of at least one value."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high)


def figures_of(report: Report, row: str, peer: str, metric: str) -> dict[int, float]:
    """One figure by round, of the rounds that gave it."""
    return {
        each.round: each.figures[metric]
        for each in report.measurements
        if each.row == row and each.peer == peer and metric in each.figures
    }


def failures_of(report: Report, row: str, peer: str) -> list[Measurement]:
    """The rounds that gave nothing."""
    return [
        each
        for each in report.measurements
        if each.row == row and each.peer == peer and each.failure
    ]


def ratio(report: Report, row: str, metric: str, peers: tuple[str, str]) -> float | None:
    """The median of the ratios of two peers, round by round; None if they never met."""
    one, other = (figures_of(report, row, peer, metric) for peer in peers)
    ratios = [one[number] / other[number] for number in one if other.get(number)]
    return statistics.median(ratios) if ratios else None


def all_spreads(report: Report) -> dict[str, dict[str, dict[str, Spread]]]:
    """Every spread by row, peer and metric."""
    return {
        row.name: {
            peer.name: {
                metric: spread_of(list(values.values()))
                for metric in row.metrics
                if (values := figures_of(report, row.name, peer.name, metric))
            }
            for peer in report.peers
        }
        for row in report.rows
    }
