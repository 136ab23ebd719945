"""A report as a picture: what each peer takes for the same work, Weft being 1.

The scale is logarithmic, so that twice as much and half as much are equally far from 1. The
colours are of middling lightness and the ground is left out: a page may be light or dark.
"""

import math
from html import escape

from benchmarks.peers.report import Report, RowFacts
from benchmarks.peers.spreads import figures_of, ratio, spread_of
from benchmarks.peers.table import OURS, shown

WIDTH = 880
_LEFT = 20
_RIGHT = 70
_LEGEND_LINE = 16
_BELOW_LEGEND = 32
_BAR = 9
_TITLE = 18
_BETWEEN = 12
_INK = "#7d8590"
_LINE = "#7d859066"
_COLOURS = (
    *("#4b8bd4", "#8a6fd1", "#d05a4e", "#b98a2f", "#3f9d74"),
    *("#c0619f", "#5aa1a8", "#8d8d54"),
)
_UNITS = {"cpu_us": "µs of CPU each", "p50_us": "µs, p50", "kib": "KiB each"}
_TICKS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
# A bar that would be longer is cut short and says so: the others would be too small to tell apart.
_MOST = _TICKS[-1]


def svg(report: Report) -> str:
    """The picture, for a page that is at least 880 pixels wide or scales it."""
    others = [peer for peer in report.peers if peer.name != OURS]
    groups = [(row, _ratios(report, row)) for row in report.rows]
    groups = [(row, ratios) for row, ratios in groups if ratios]
    scale = _Scale([value for _, ratios in groups for value in ratios.values()])
    group = _TITLE + _BAR * len(others) + _BETWEEN
    places = _places([peer.title for peer in others])
    first = places[-1][1] + _BELOW_LEGEND if places else _BELOW_LEGEND
    bottom = first + group * len(groups)
    parts = [*_legend([peer.title for peer in others], places), *_tick_texts(scale, first, bottom)]
    for number, (row, ratios) in enumerate(groups):
        top = first + group * number
        parts.append(_text(_LEFT, top + 12, _title(report, row), "row"))
        parts += _lines(scale, top + _TITLE - 2, top + group - _BETWEEN)
        for place, peer in enumerate(others):
            if peer.name in ratios:
                at = top + _TITLE + _BAR * place
                parts += _bar(scale, at, ratios[peer.name], _COLOURS[place % len(_COLOURS)])
    return _page(bottom + 20, parts)


class _Scale:
    """Where a ratio lies from left to right."""

    def __init__(self, ratios: list[float]) -> None:
        self.low = min([0.5, *ratios])
        self.high = min(_MOST, max([2.0, *ratios]))
        self.ticks = [tick for tick in _TICKS if self.low <= tick <= self.high]

    def at(self, ratio: float) -> float:
        part = math.log(min(ratio, self.high) / self.low) / math.log(self.high / self.low)
        return _LEFT + part * (WIDTH - _LEFT - _RIGHT)


def _ratios(report: Report, row: RowFacts) -> dict[str, float]:
    """What each other peer takes, as a multiple of ours."""
    found = {
        peer.name: ratio(report, row.name, row.charted, (peer.name, OURS))
        for peer in report.peers
        if peer.name != OURS
    }
    return {name: value for name, value in found.items() if value is not None and value > 0}


def _title(report: Report, row: RowFacts) -> str:
    values = list(figures_of(report, row.name, OURS, row.charted).values())
    unit = _UNITS.get(row.charted, row.charted)
    return f"{row.title} — Weft: {shown(spread_of(values).median)} {unit}"


def _places(titles: list[str]) -> list[tuple[int, int]]:
    """Where each entry of the legend begins: on as many lines as they need."""
    places: list[tuple[int, int]] = []
    at, base = _LEFT, 38
    for title in titles:
        width = 40 + 7 * len(title)
        if at > _LEFT and at + width > WIDTH:
            at, base = _LEFT, base + _LEGEND_LINE
        places.append((at, base))
        at += width
    return places


def _legend(titles: list[str], places: list[tuple[int, int]]) -> list[str]:
    parts = [_text(_LEFT, 18, "Cost of the same work, Weft = 1; to the right is more", "head")]
    for number, (title, (at, base)) in enumerate(zip(titles, places, strict=True)):
        colour = _COLOURS[number % len(_COLOURS)]
        box = f'x="{at}" y="{base - 9}" width="10" height="10" rx="2"'
        parts.append(f'<rect {box} fill="{colour}"/>')
        parts.append(_text(at + 15, base, title, "note"))
    return parts


def _tick_texts(scale: _Scale, top: int, bottom: int) -> list[str]:
    heights = (top - 6, bottom + 10)
    return [
        _text(scale.at(tick), at, f"{tick:g}×", "tick") for tick in scale.ticks for at in heights
    ]


def _lines(scale: _Scale, top: int, bottom: int) -> list[str]:
    """Beside the bars only, so that no title is struck through; the last is that of 1."""
    colours = {tick: _LINE for tick in scale.ticks if tick != 1} | {1: _INK}
    return [_line(scale.at(tick), top, bottom, colour) for tick, colour in colours.items()]


def _bar(scale: _Scale, top: int, value: float, colour: str) -> list[str]:
    one, end = scale.at(1), scale.at(value)
    left, width = min(one, end), abs(end - one)
    label = f"{value:.2g}×" if value < 9.5 else f"{value:,.0f}×"
    if value > scale.high:
        label += " →"
    return [
        f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_BAR - 2}" fill="{colour}"/>',
        _text(max(one, end) + 5, top + 7, label, "value"),
    ]


def _line(at: float, top: int, bottom: int, colour: str) -> str:
    return f'<line x1="{at:.1f}" y1="{top}" x2="{at:.1f}" y2="{bottom}" stroke="{colour}"/>'


def _text(at: float, base: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{at:.1f}" y="{base:.1f}">{escape(text)}</text>'


def _page(height: int, parts: list[str]) -> str:
    style = (
        f"text{{font:12px system-ui,sans-serif;fill:{_INK}}}"
        ".head{font-size:14px;font-weight:600}.row{font-weight:600}"
        ".tick{text-anchor:middle;font-size:11px}.value{font-size:9px}"
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img">'
    )
    title = "<title>Weft and its peers: cost of the same work</title>"
    return "\n".join([head, title, f"<style>{style}</style>", *parts, "</svg>", ""])
