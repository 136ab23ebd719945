"""Small loads on every broker that is installed here, so that the benchmark does not rot."""

import dataclasses
import os

import pytest
from benchmarks.peers.brokers import Peer
from benchmarks.peers.kept.keepers import KEEPERS
from benchmarks.peers.kept.measuring import DISK, measure, until_kept, wait_until_kept
from benchmarks.peers.kept.rows import ROWS
from benchmarks.peers.kept.stores import Store
from benchmarks.peers.rows import Row
from benchmarks.running import Failed

needs_cores = pytest.mark.skipif(
    not {0, 1} <= os.sched_getaffinity(0), reason="the broker and the load need a core each"
)
INSTALLED = [peer for peer in KEEPERS.values() if peer.is_installed]
SMALL = {"count": 50, "warm": 0.01, "window": 10}


def counting(kept: int) -> Store:
    return Store(lambda _port: None, lambda _port: kept)


@needs_cores
@pytest.mark.parametrize("peer", INSTALLED, ids=lambda peer: peer.name)
@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_a_row_gives_its_figures_and_leaves_nothing(row: Row, peer: Peer) -> None:
    if peer.name in row.left_out:
        pytest.skip("it has no such thing")
    small = dataclasses.replace(row, options={**row.options, **SMALL})
    figures = measure(small, peer)
    assert set(row.metrics) <= figures.keys()
    assert figures["count"] >= SMALL["count"]
    assert not list(DISK.glob("weft-peer-*"))


def test_what_is_not_kept_is_found() -> None:
    with pytest.raises(Failed, match=r"1,233 of 1,234 messages are kept after"):
        wait_until_kept(counting(1233), 0, 1234, 0)


def test_what_is_kept_twice_is_found() -> None:
    with pytest.raises(Failed, match=r"1,235 of 1,234 messages are kept after"):
        wait_until_kept(counting(1235), 0, 1234, 0.02)


def test_what_is_kept_late_is_waited_for() -> None:
    counts = iter([7, 8, 9])
    late_s = wait_until_kept(Store(lambda _port: None, lambda _port: next(counts)), 0, 9, 10)
    assert 0.02 <= late_s < 10


def test_time_and_work_after_the_last_delivery_count() -> None:
    figures = {"deliveries": 1000, "published": 1200, "seconds": 1.5, "broker_cpu_s": 0.1}
    assert until_kept(figures, 0.5, 0.3) == {
        "seconds": 2.0,
        "per_s": 500.0,
        "deliveries": 1200,
        "broker_cpu_s": 0.3,
    }
