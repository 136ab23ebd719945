"""One measurement: a fresh broker on one core, the load generator on another, and their figures."""

import contextlib
import os
import resource
from collections.abc import Iterator

from benchmarks.peers.brokers import Peer, Running
from benchmarks.peers.rows import Row
from benchmarks.running import Figures, Load, load, steady_rss_bytes

BROKER_CORE = 0
LOAD_CORE = 1
_COUNTED = ("deliveries", "messages", "connections")


def measure(row: Row, peer: Peer) -> dict[str, float]:
    """The figures of one load on one broker.

    Raises:
        Failed: the broker cut a connection, lost something or stalled.
    """
    allow_many_files()
    with contextlib.ExitStack() as stack:
        with pinned(BROKER_CORE):
            broker = stack.enter_context(peer.running())
        with pinned(LOAD_CORE):
            options = options_on(broker, row, peer)
            if row.command == "idle":
                return _idle(broker, options)
            return derived(load(row.command, **options))


def options_on(broker: Running, row: Row, peer: Peer) -> dict[str, object]:
    """What the load generator is told for one load on one broker."""
    return {
        "protocol": peer.protocol,
        "port": broker.port,
        "pids": ",".join(map(str, broker.pids)),
        **row.options_for(peer.name),
    }


def allow_many_files() -> None:
    """Let the brokers, which inherit the limit, have as many connections as the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def derived(figures: Figures) -> dict[str, float]:
    """What of the generator's figures is reported."""
    count = next(figures[name] for name in _COUNTED if name in figures)
    reported = {"count": count, "cpu_us": figures["broker_cpu_s"] / count * 1e6}
    reported |= {name: figures[name] for name in ("per_s", "p50_us", "p99_us") if name in figures}
    if "seconds" in figures:
        reported["own_percent"] = figures["own_cpu_s"] / figures["seconds"] * 100
    return reported


def _idle(broker: Running, options: dict[str, object]) -> dict[str, float]:
    """Growth of the broker's resident memory, without what the kernel keeps for its sockets."""
    load("connect", **{**options, "count": 10})
    before = sum(map(steady_rss_bytes, broker.pids))
    held = Load("connect", **options)
    try:
        count = held.figures()["connections"]
        after = sum(map(steady_rss_bytes, broker.pids))
    finally:
        held.end()
    return {"count": count, "kib": (after - before) / 1024 / count}


@contextlib.contextmanager
def pinned(core: int) -> Iterator[None]:
    """What is started in here runs on one core, all its processes and threads."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
