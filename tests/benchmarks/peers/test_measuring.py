"""Small loads on a gateway, so that the benchmark itself does not rot."""

import dataclasses
import os

import pytest
from benchmarks.peers.brokers import PEERS
from benchmarks.peers.measuring import measure
from benchmarks.peers.rows import ROWS
from benchmarks.running import Failed, load

pytestmark = pytest.mark.skipif(
    not {0, 1} <= os.sched_getaffinity(0), reason="the broker and the load need a core each"
)
SMALL = {"count": 50, "warm": 0, "window": 10}


@pytest.mark.parametrize("name", ["one-128", "fan-100", "patterns-in-turn", "request", "connects"])
def test_a_row_gives_its_figures(name: str) -> None:
    options = {**ROWS[name].options, **SMALL}
    if "patterns" in options:
        options |= {"patterns": 100, "subjects": 20}
    row = dataclasses.replace(ROWS[name], options=options)
    figures = measure(row, PEERS["weft"])
    assert set(row.metrics) <= figures.keys()
    assert figures["count"] == SMALL["count"] * options.get("subscribers", 1)


def test_pinning_ends_with_the_measurement() -> None:
    before = os.sched_getaffinity(0)
    with pytest.raises(Failed, match="no option nonsense=1"):
        measure(dataclasses.replace(ROWS["pace"], options={"nonsense": 1}), PEERS["weft"])
    assert os.sched_getaffinity(0) == before


def test_a_load_that_fails_says_why() -> None:
    with pytest.raises(Failed, match="no protocol pigeon"):
        load("flow", protocol="pigeon", port=1)
