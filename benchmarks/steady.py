"""What a delivery costs beside many subscriptions, beside many idle connections, and over time.

The worker has one core, the load generator another. STEADY_S shortens the ten minutes.
"""

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterator

from benchmarks.peers.measuring import BROKER_CORE, LOAD_CORE, allow_many_files, pinned
from benchmarks.running import Figures, Gateway, Load, load, rss_bytes

SUBSCRIPTIONS = (1, 100, 10_000, 100_000)
IDLE = (10, 1000, 10_000)
ROUNDS = 5
STEADY_S = float(os.environ.get("STEADY_S", "600"))
STRETCH_S = 20.0
FLOW = {"size": 128, "count": 1_000_000_000, "window": 10_000, "warm": 0.2, "seconds": 1.0}


def run() -> Figures:
    """Measure all three, the first two in turns."""
    allow_many_files()
    return {
        "subscriptions": _medians(SUBSCRIPTIONS, _beside_subscriptions),
        "idle": _medians(IDLE, _beside_idle),
        "over_time": _over_time(),
    }


def lines(figures: Figures) -> list[str]:
    """The figures for people."""
    shown = ["CPU µs of the worker for a delivery of 128 B, 1→1"]
    for name, title in (("subscriptions", "subscriptions"), ("idle", "idle connections")):
        cells = [f"{count:,}: {cost:.3f}" for count, cost in figures[name].items()]
        shown.append(f"  beside {title:17s} {', '.join(cells)}")
    over = figures["over_time"]
    mib = 1 << 20
    shown += [
        f"over {over['seconds']:,.0f} s, {over['deliveries'] / 1e6:,.0f} M deliveries",
        f"  CPU µs each      {_course(over['cpu_us'])}",
        f"  worker's MiB     {_course([each / mib for each in over['rss']])}",
    ]
    return shown


def _course(values: list[float]) -> str:
    first, last = values[0], values[-1]
    return f"first {first:.3g}, last {last:.3g}, least {min(values):.3g}, most {max(values):.3g}"


def _medians(counts: tuple[int, ...], measure: Callable[[int], float]) -> dict[int, float]:
    """The cost beside so many, each in a gateway of its own, in turns."""
    found: dict[int, list[float]] = {count: [] for count in counts}
    for _ in range(ROUNDS):
        for count in counts:
            found[count].append(measure(count))
    return {count: statistics.median(costs) for count, costs in found.items()}


def _beside_subscriptions(count: int) -> float:
    with _gateway() as gateway:
        return _cost(gateway, patterns=count)


def _beside_idle(count: int) -> float:
    with _gateway() as gateway:
        idle = Load("connect", port=gateway.port, count=count, window=100, subscribe=1)
        idle.figures()
        try:
            return _cost(gateway)
        finally:
            idle.end()


def _over_time() -> Figures:
    """Stretches of load on one gateway, each with new connections."""
    costs: list[float] = []
    memory: list[int] = []
    deliveries = 0
    began = time.monotonic()
    with _gateway() as gateway:
        while time.monotonic() - began < STEADY_S:
            figures = _flow(gateway, seconds=min(STRETCH_S, STEADY_S))
            costs.append(figures["broker_cpu_s"] / figures["deliveries"] * 1e6)
            memory.append(rss_bytes(gateway.worker()))
            deliveries += figures["deliveries"]
    return {
        "seconds": time.monotonic() - began,
        "deliveries": deliveries,
        "cpu_us": costs,
        "rss": memory,
    }


def _cost(gateway: Gateway, **options: int) -> float:
    figures = _flow(gateway, **options)
    return float(figures["broker_cpu_s"] / figures["deliveries"] * 1e6)


def _flow(gateway: Gateway, **options: float) -> Figures:
    with pinned(LOAD_CORE):
        return load("flow", port=gateway.port, pids=gateway.worker(), **{**FLOW, **options})


@contextlib.contextmanager
def _gateway() -> Iterator[Gateway]:
    with contextlib.ExitStack() as stack:
        with pinned(BROKER_CORE):
            gateway = stack.enter_context(Gateway())
        yield gateway
