"""Two busy services on two cores: each with its load generator on a core of its own."""

import os
import statistics
from concurrent.futures import ThreadPoolExecutor
from operator import truediv

from benchmarks.running import Figures, Gateway, Load

SERVICES = ("north", "south")
SIZE = 128
MESSAGES = 3_000_000
WINDOW = 2000
ROUNDS = 9


def run() -> Figures:
    """Measure one service alone and both at once, in turns."""
    alone: list[float] = []
    together: list[float] = []
    with Gateway(*SERVICES) as gateway, ThreadPoolExecutor(len(SERVICES)) as pool:
        for core, service in enumerate(SERVICES):
            os.sched_setaffinity(gateway.worker(service), {core})
        for _ in range(ROUNDS):
            alone.append(_rate(gateway, 0))
            rates = pool.map(_rate, [gateway] * len(SERVICES), range(len(SERVICES)))
            together.append(sum(rates))
    return {
        "alone_per_s": statistics.median(alone),
        "together_per_s": statistics.median(together),
        "ratio": statistics.median(map(truediv, together, alone)),
    }


def lines(figures: Figures) -> list[str]:
    """The figures for people."""
    return [
        "two busy services, each with its load generator on a core of its own",
        f"  one alone        {figures['alone_per_s'] / 1e6:.2f} M deliveries/s",
        f"  both at once     {figures['together_per_s'] / 1e6:.2f} M/s, {figures['ratio']:.2f}×",
    ]


def _rate(gateway: Gateway, core: int) -> float:
    running = Load(
        "flow",
        port=gateway.port,
        service=SERVICES[core],
        size=SIZE,
        count=MESSAGES,
        window=WINDOW,
    )
    os.sched_setaffinity(running.process.pid, {core})
    figures = running.figures()
    running.end()
    return float(figures["per_s"])
