"""Plots of results: PNG, or a self-contained HTML page."""

import html
import io
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.errors import BadOption
from weft.pipeline.job import nearest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = dict[str, Any]

# More lines could not be distinguished.
_LINES_MAX = 8
_SUBJECTS_MAX = 4
_SUFFIXES = (".png", ".html")


def check(name: str, path: Path) -> None:
    """Check that a job's result has a plot, and that it can be drawn.

    Raises:
        BadOption: No plot for the job, invalid file name, or a missing package.
    """
    if name not in _DRAWN:
        raise BadOption(f"{name} has no picture{nearest(name, _DRAWN)}")
    if path.suffix not in _SUFFIXES:
        raise BadOption(f"{path.name} must end in {' or '.join(_SUFFIXES)}")
    try:
        import matplotlib.figure  # noqa: F401, PLC0415  # large, and few need it
    except ModuleNotFoundError as error:
        raise BadOption('a picture needs matplotlib: pip install "weft-mesh[plot]"') from error


def draw(name: str, rows: Sequence[Row], path: Path) -> None:
    """Draw the result of a job.

    Raises:
        BadOption: No plot for the job, or no rows.
        OSError: The file cannot be written.
    """
    check(name, path)
    if not rows:
        raise BadOption("there is nothing to draw: the result has no rows")
    from matplotlib import rc_context  # noqa: PLC0415  # large, and few need it
    from matplotlib.figure import Figure  # noqa: PLC0415

    # A dollar sign in a subject does not start a formula.
    with rc_context({"text.parse_math": False}):
        figure = Figure(figsize=(10, 6), layout="constrained")
        _DRAWN[name](figure, rows)
        figure.suptitle(name)
        if path.suffix == ".png":
            figure.savefig(path, dpi=120)
        else:
            path.write_text(_page(name, figure), encoding="utf-8")


def _page(name: str, figure: "Figure") -> str:
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg")
    # The XML prolog before the element only belongs in a file of its own.
    svg = drawn.getvalue()
    title = html.escape(name)
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>\n'
        f"<body>{svg[svg.index('<svg') :]}</body></html>\n"
    )


def _rates(figure: "Figure", rows: Sequence[Row]) -> None:
    for axes, column in zip(figure.subplots(2, sharex=True), ("messages", "bytes"), strict=True):
        totals: defaultdict[str, defaultdict[Any, float]] = defaultdict(lambda: defaultdict(float))
        for row in rows:
            length_s = (row["end"] - row["start"]).total_seconds()
            totals[row["subject"]][row["start"]] += row[column] / length_s
        busiest = sorted(totals, key=lambda each: -sum(totals[each].values()))
        windows = sorted({(row["start"], row["end"]) for row in rows})
        for subject in busiest[:_LINES_MAX]:
            _line(axes, subject, with_silence(totals[subject], windows))
        axes.set_ylabel(f"{column} a second")
        most = max(max(each.values()) for each in totals.values())
        axes.set_ylim(0, most * 1.1 or 1)
        _legend(axes, len(busiest), _LINES_MAX)


def _latency(figure: "Figure", rows: Sequence[Row]) -> None:
    by_subject: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_subject[row["subject"]].append(row)
    busiest = sorted(by_subject, key=lambda each: -sum(row["messages"] for row in by_subject[each]))
    shown = busiest[:_SUBJECTS_MAX]
    for axes, subject in zip(figure.subplots(len(shown), squeeze=False).flat, shown, strict=True):
        own = sorted(by_subject[subject], key=lambda row: row["start"])
        for column in ("p50_s", "p90_s", "p99_s", "max_s"):
            known = [(row["start"], row[column] * 1000) for row in own if row[column] is not None]
            _line(axes, column.removesuffix("_s"), known)
        axes.set_title(subject)
        axes.set_ylabel("ms")
        _legend(axes, len(busiest), _SUBJECTS_MAX)


def _matrix(figure: "Figure", rows: Sequence[Row]) -> None:
    nodes = sorted({row[end] for row in rows for end in ("from_node", "to_node")})
    counts = [[0] * len(nodes) for _ in nodes]
    for row in rows:
        counts[nodes.index(row["from_node"])][nodes.index(row["to_node"])] += row["messages"]
    axes = figure.subplots()
    image = axes.imshow(counts, cmap="Blues")
    figure.colorbar(image, label="messages")
    axes.set_xticks(range(len(nodes)), nodes)
    axes.set_yticks(range(len(nodes)), nodes)
    axes.set_xlabel("to")
    axes.set_ylabel("from")
    middle = max(map(max, counts)) / 2
    for from_index, line in enumerate(counts):
        for to_index, count in enumerate(line):
            color = "white" if count > middle else "black"
            axes.text(to_index, from_index, f"{count:,}", ha="center", va="center", color=color)


def with_silence(
    values: Mapping[datetime, float], windows: Sequence[tuple[datetime, datetime]]
) -> list[tuple[datetime, float]]:
    """Return the values by time, with 0 for every window without a value and for missing windows.

    A result has no rows for silence: a line from row to row would show traffic that did not exist.
    """
    points = dict.fromkeys((start for start, _ in windows), 0.0) | dict(values)
    for (start, end), (after, _) in pairwise(windows):
        if end < after:
            # From the end of this window to the last one of the same length before the next.
            points[end] = 0.0
            points.setdefault(max(end, after - (end - start)), 0.0)
    return sorted(points.items())


def _legend(axes: "Axes", count: int, limit: int) -> None:
    """Draw a legend beside the lines, where it covers none."""
    title = _left_out(count, limit)
    axes.legend(fontsize="small", title=title, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _line(axes: "Axes", label: str, points: Sequence[tuple[Any, float]]) -> None:
    axes.plot([x for x, _ in points], [y for _, y in points], marker=".", label=label)


def _left_out(count: int, limit: int) -> str | None:
    return f"{count - limit} more are left out" if count > limit else None


_DRAWN: dict[str, Callable[["Figure", Sequence[Row]], None]] = {
    "rates": _rates,
    "latency": _latency,
    "matrix": _matrix,
}
