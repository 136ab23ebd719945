"""One measurement: a fresh broker that writes to the disk, a load on it, and what is kept of it."""

import contextlib
import os
import time
from pathlib import Path

from benchmarks.peers.brokers import Peer
from benchmarks.peers.kept.keepers import UNKEPT
from benchmarks.peers.kept.stores import STORES, Store
from benchmarks.peers.measuring import BROKER_CORE, LOAD_CORE, derived, options_on, pinned
from benchmarks.peers.rows import Row
from benchmarks.running import Failed, Figures, cpu_s, load

# Not where temporary files are: that may be no disk.
DISK = Path("build")
LATE_S = 10


def measure(row: Row, peer: Peer) -> dict[str, float]:
    """The figures of one load on one broker.

    Raises:
        Failed: the broker lost something, stalled, or has not kept what it was given.
    """
    DISK.mkdir(exist_ok=True)
    # What others have written is no part of this.
    os.sync()
    store = STORES[peer.protocol]
    with contextlib.ExitStack() as stack:
        with pinned(BROKER_CORE):
            broker = stack.enter_context(peer.running(DISK.absolute()))
        store.prepare(broker.port)
        before_s = sum(map(cpu_s, broker.pids))
        with pinned(LOAD_CORE):
            figures = load(row.command, **options_on(broker, row, peer))
        expected = 0 if peer.name == UNKEPT else figures["published"]
        is_acknowledged = row.command == "acknowledged"
        late_s = wait_until_kept(store, broker.port, expected, 0 if is_acknowledged else LATE_S)
        if not is_acknowledged:
            worked_s = sum(map(cpu_s, broker.pids)) - before_s
            figures |= until_kept(figures, late_s, worked_s)
    return derived(figures)


def wait_until_kept(store: Store, port: int, expected: int, late_s: float) -> float:
    """Wait until so many messages are kept; how long that took.

    Raises:
        Failed: other than so many are, after so long.
    """
    began = time.monotonic()
    while (kept := store.kept(port)) != expected:
        if time.monotonic() >= began + late_s:
            raise Failed(f"{kept:,} of {expected:,} messages are kept after {late_s} s")
        time.sleep(0.01)
    return time.monotonic() - began


def until_kept(figures: Figures, late_s: float, worked_s: float) -> Figures:
    """The figures of messages that may be written after they were delivered: that counts too."""
    seconds = figures["seconds"] + late_s
    return {
        "seconds": seconds,
        "per_s": figures["deliveries"] / seconds,
        "deliveries": figures["published"],
        "broker_cpu_s": worked_s,
    }
