import re
import xml.etree.ElementTree as ET

import msgspec
from benchmarks.peers.chart import WIDTH, svg
from tests.benchmarks.peers.reports import report

SVG = "{http://www.w3.org/2000/svg}"


def texts(picture: str) -> list[str]:
    return [each.text or "" for each in ET.fromstring(picture).iter(f"{SVG}text")]  # noqa: S314


def test_every_other_peer_is_a_multiple_of_ours() -> None:
    found = texts(svg(report()))
    assert "2×" in found  # nats29 takes 5, 2 and 2 times as much
    assert "20×" in found


def test_a_row_says_what_ours_takes() -> None:
    assert "1→1 & more — Weft: 0.200 µs of CPU each" in texts(svg(report()))


def test_whoever_takes_less_is_drawn_to_the_left() -> None:
    measurements = [
        msgspec.structs.replace(each, figures={"cpu_us": 0.05}) if each.peer == "nats29" else each
        for each in report().measurements
    ]
    tree = ET.fromstring(svg(msgspec.structs.replace(report(), measurements=measurements)))  # noqa: S314
    bars = [each for each in tree.iter(f"{SVG}rect") if each.get("rx") is None]
    lines = list(tree.iter(f"{SVG}line"))
    assert float(bars[0].get("x", 0)) < float(lines[-1].get("x1", 0))


def test_a_row_that_we_failed_is_left_out() -> None:
    others = [each for each in report().measurements if each.peer != "weft"]
    picture = svg(msgspec.structs.replace(report(), measurements=others))
    assert not any("1→1" in text for text in texts(picture))


def test_a_bar_that_would_dwarf_the_others_is_cut_short_and_says_so() -> None:
    measurements = [
        msgspec.structs.replace(each, figures={"cpu_us": 1000.0}) if each.peer == "redis" else each
        for each in report().measurements
    ]
    picture = svg(msgspec.structs.replace(report(), measurements=measurements))
    assert any(text.endswith("× →") for text in texts(picture))


def test_a_long_legend_takes_more_lines_and_stays_within_the_picture() -> None:
    few = report()
    others = [
        msgspec.structs.replace(few.peers[1], name=f"other{n}", title=f"another broker {n}")
        for n in range(9)
    ]
    many = msgspec.structs.replace(few, peers=[few.peers[0], *others])
    places = re.findall(r'<rect x="(\d+)" y="(\d+)" width="10"', svg(many))
    assert len(places) == 9
    assert len({height for _, height in places}) > 1
    assert all(int(left) < WIDTH - 100 for left, _ in places)
