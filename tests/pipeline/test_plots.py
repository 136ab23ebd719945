import io
import re
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from tests.pipeline.desk import moment

from weft.errors import BadOption
from weft.pipeline import plots
from weft.pipeline.plots import check, draw, with_silence

START, END = moment(0), moment(0) + timedelta(seconds=10)
SPAN = {"start": START, "end": END, "service": "weather"}
RESULTS: dict[str, list[dict[str, Any]]] = {
    "rates": [
        {**SPAN, "subject": f"sensors.${number}$", "messages": number, "bytes": 4 * number}
        for number in range(10)
    ],
    "latency": [
        {
            **SPAN,
            "subject": f"sensors.{number}",
            "messages": 1,
            "p50_s": 0.01,
            "p90_s": 0.02,
            "p99_s": None,
            "max_s": 0.04,
        }
        for number in range(6)
    ],
    "matrix": [
        {"from_node": "london", "to_node": "london", "messages": 1200},
        {"from_node": "london", "to_node": "paris", "messages": 7},
    ],
}
SHOWN = {
    "rates": ["messages a second", "bytes a second", "sensors.$9$", "2 more are left out"],
    "latency": ["p50", "p99", "sensors.0", "2 more are left out"],
    "matrix": ["london", "paris", "1,200", "from", "to"],
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_page_needs_nothing_else(tmp_path: Path, name: str) -> None:
    path = tmp_path / "out.html"
    draw(name, RESULTS[name], path)
    page = path.read_text()
    assert page.startswith("<!doctype html>")
    assert page.count("<svg") == 1
    texts = re.findall(r"<!-- (.*?) -->", page)
    assert set(SHOWN[name]) <= set(texts)
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)


@pytest.mark.parametrize("name", RESULTS)
def test_a_picture_is_a_png(tmp_path: Path, name: str) -> None:
    path = tmp_path / "out.png"
    draw(name, RESULTS[name], path)
    assert path.read_bytes().startswith(b"\x89PNG\r\n")


@pytest.mark.parametrize(
    ("name", "file", "said"),
    [
        ("sessions", "a.png", "sessions has no picture, only rates, latency, matrix"),
        ("rates", "a.gif", "a.gif must end in .png or .html"),
    ],
)
def test_what_cannot_be_drawn_is_told(name: str, file: str, said: str) -> None:
    with pytest.raises(BadOption) as raised:
        check(name, Path(file))
    assert str(raised.value) == said


def test_of_nothing_there_is_no_picture(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="the result has no rows"):
        draw("rates", [], tmp_path / "a.png")


def test_without_its_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)
    with pytest.raises(BadOption, match=r'pip install "weft-mesh\[plot\]"'):
        check("rates", Path("a.png"))


def test_silence_is_drawn_as_none() -> None:
    def at(seconds: int) -> datetime:
        return START + timedelta(seconds=seconds)

    windows = [(at(start), at(start + 10)) for start in (0, 10, 60, 70)]
    points = with_silence({at(0): 5.0, at(60): 7.0}, windows)
    assert points == [
        *[(at(0), 5.0), (at(10), 0.0), (at(20), 0.0)],
        *[(at(50), 0.0), (at(60), 7.0), (at(70), 0.0)],
    ]
    assert with_silence({at(0): 5.0}, windows[:1]) == [(at(0), 5.0)]


@pytest.mark.parametrize("name", ["rates", "latency"])
def test_a_legend_covers_no_line(name: str) -> None:
    figure = Figure(figsize=(10, 6), layout="constrained")
    plots._DRAWN[name](figure, RESULTS[name])
    figure.savefig(io.BytesIO())
    for axes in figure.axes:
        legend = axes.get_legend()
        assert legend is not None
        assert legend.get_window_extent().x0 >= axes.get_window_extent().x1
        assert legend.get_window_extent().x1 <= figure.bbox.x1
