"""A report as a table for people: a block for each row, a line for each figure."""

from itertools import zip_longest

from benchmarks.peers.report import PeerFacts, Report, RowFacts
from benchmarks.peers.rows import METRICS
from benchmarks.peers.spreads import failures_of, figures_of, ratio, spread_of

OURS = "weft"
_GAP = "  "


def lines(report: Report) -> list[str]:
    """The table, and below it why something failed and how everything was set up."""
    notes: list[str] = []
    # A row with only its first cell is the title of a block, as wide as it likes.
    cells = [["", *(peer.title for peer in report.peers), _against(report)]]
    for row in report.rows:
        cells.append([row.title])
        cells += _block(report, row, notes)
    windows = [note for row in report.rows for note in _windows(report, row)]
    return [*_aligned(cells), "", *notes, *windows, *_set_up(report)]


def shown(value: float) -> str:
    """A figure with three digits that matter."""
    if value >= 1e6:
        return _digits(value / 1e6) + " M"
    if value >= 1e4:
        return _digits(value / 1e3) + " k"
    return _digits(value)


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def _against(report: Report) -> str:
    titles = {peer.name: peer.title for peer in report.peers}
    if not {OURS, report.reference} <= titles.keys():
        return ""
    return f"{OURS} / {titles[report.reference]}"


def _block(report: Report, row: RowFacts, notes: list[str]) -> list[list[str]]:
    failed = [_failure(report, row, peer, notes) for peer in report.peers]
    block = []
    for metric in row.metrics:
        line = [f"  {METRICS[metric]}"]
        for peer, failure in zip(report.peers, failed, strict=True):
            values = list(figures_of(report, row.name, peer.name, metric).values())
            line.append(_cell(values, metric) + failure if values else failure.strip() or "-")
        against = ratio(report, row.name, metric, (OURS, report.reference))
        is_compared = metric != "own_percent" and against is not None
        line.append(f"{against:.2f}×" if is_compared else "")
        block.append(line)
    return block


def _failure(report: Report, row: RowFacts, peer: PeerFacts, notes: list[str]) -> str:
    """A mark for a cell, with a note that says why."""
    failures = failures_of(report, row.name, peer.name)
    if not failures:
        return ""
    reasons = sorted({each.failure for each in failures})
    notes.append(
        f"[{len(notes) + 1}] {row.name}, {peer.title}: failed in {len(failures)} of "
        f"{report.rounds} rounds: {'; '.join(reasons)}"
    )
    return f" failed [{len(notes)}]"


def _windows(report: Report, row: RowFacts) -> list[str]:
    return [
        f"{row.name}, {peer.title}: only {row.windows[peer.name]:,} in flight"
        for peer in report.peers
        if peer.name in row.windows
    ]


def _cell(values: list[float], metric: str) -> str:
    spread = spread_of(values)
    if metric == "own_percent":
        return f"{spread.median:.0f}"
    if len(values) == 1:
        return shown(spread.median)
    middle, low, high = map(shown, (spread.median, spread.low, spread.high))
    # A unit that all share is said once.
    if low[-2:] == high[-2:] == middle[-2:] and middle[-1].isalpha():
        low, high = low[:-2], high[:-2]
    return f"{middle} ({low}…{high})"


def _aligned(cells: list[list[str]]) -> list[str]:
    columns = zip_longest(*(row for row in cells if len(row) > 1), fillvalue="")
    widths = [max(map(len, column)) for column in columns]
    aligned = []
    for row in cells:
        if len(row) == 1:
            aligned += ["", row[0]]
            continue
        padded = [row[0].ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        aligned.append(_GAP.join(padded).rstrip())
    return aligned


def _set_up(report: Report) -> list[str]:
    facts = report.machine
    where = f"{facts['processor']}, {facts['cores']} cores, Linux {facts['kernel']}"
    return [
        f"{report.rounds} rounds, all in turns: the median, and where the middle half lies.",
        f"Ratios are medians of the rounds' own. {report.cores}",
        f"{where}, load before {facts['load_before']}",
        *(f"{peer.title}: {peer.settings}" for peer in report.peers),
    ]
