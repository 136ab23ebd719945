"""Short loads on every way that is installed here, so that the benchmark does not rot."""

import dataclasses

import pytest
from benchmarks.peers.lanes.measuring import check, measure
from benchmarks.peers.lanes.rows import ROWS
from benchmarks.peers.lanes.ways import WAYS, Way
from benchmarks.peers.rows import Row
from benchmarks.running import Failed

INSTALLED = [way for way in WAYS.values() if way.is_installed]
LANE, RELAYED, OTHER = WAYS["weft-tcp"], WAYS["weft-relayed"], WAYS["zenoh"]


def short(row: Row) -> Row:
    return dataclasses.replace(row, options={**row.options, "seconds": 0.05})


@pytest.mark.parametrize("way", INSTALLED, ids=lambda way: way.name)
@pytest.mark.parametrize("name", ["one-16", "four-128", "turns", "request"])
def test_a_row_gives_its_figures(name: str, way: Way) -> None:
    row = short(ROWS[name])
    figures = measure(row, way)
    assert set(row.metrics) <= figures.keys()
    assert figures["count"] > 0
    # A gateway may have nothing at all to do while lanes carry everything.
    assert way.is_lane or (figures["gateway_us"] > 0) == bool(way.gateway)
    assert figures["clients_us"] > 0


def test_a_pace_gives_its_figures() -> None:
    figures = measure(short(ROWS["pace"]), RELAYED)
    assert set(ROWS["pace"].metrics) <= figures.keys()


def test_a_part_that_fails_says_why() -> None:
    nowhere = dataclasses.replace(LANE, module="no_such_module")
    with pytest.raises(Failed, match=r"No module named .*no_such_module"):
        measure(short(ROWS["one-16"]), nowhere)


def test_what_was_not_heard_is_found() -> None:
    with pytest.raises(Failed, match="9 of 10 messages were heard"):
        check({"published": 10}, [{"count": 10}, {"count": 9}], OTHER)


def test_everybody_else_needs_no_lane() -> None:
    check({"published": 10}, [{"count": 10}], OTHER)


@pytest.mark.parametrize(("way", "by_lane"), [(LANE, 11), (RELAYED, 0)])
def test_all_went_by_the_way_that_is_measured(way: Way, by_lane: int) -> None:
    check({"published": 10}, [{"count": 10, "by_lane": by_lane}], way)


@pytest.mark.parametrize(("way", "by_lane"), [(LANE, 0), (LANE, 10), (RELAYED, 11)])
def test_what_went_by_another_way_is_found(way: Way, by_lane: int) -> None:
    with pytest.raises(Failed, match=f"{by_lane} messages went by lanes instead of"):
        check({"published": 10}, [{"count": 10, "by_lane": by_lane}], way)
