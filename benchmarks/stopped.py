"""A thousand subscribers, half of which stop reading: do the others notice, and what does it cost?

One process holds 500 subscribers that measure, others hold 500 each that are stopped by SIGSTOP.
The measuring ones are compared, round by round, with a run in which everybody reads. Then, for a
minute, a new 500 is stopped every few seconds, so that there are stopped readers all the time.
"""

import signal
import statistics
import time
from typing import NamedTuple

from benchmarks.running import Figures, Gateway, Load, cpu_s, load, rss_bytes

HALF = 500
SUBJECT = "load.0"
SIZE = 128
MESSAGES = 20_000
WINDOW = 500
ROUNDS = 9
SOAK_S = 60
FRESH_EVERY_S = 12
# What one reader may be owed, by default; the ceiling is this for each of the stopped.
BOUND_BYTES = 8 << 20


class Round(NamedTuple):
    """What those that measure got, and the processor time it took the worker."""

    per_s: float
    cpu_s: float


def run() -> Figures:
    """Measure in turns with everybody reading and with half of them stopped, then for a minute."""
    with Gateway() as gateway:
        reading: list[Round] = []
        stopped: list[Round] = []
        for _ in range(ROUNDS):
            reading.append(_round(gateway, is_stopped=False))
            stopped.append(_round(gateway, is_stopped=True))
        soak = _soak(gateway)
    pairs = list(zip(stopped, reading, strict=True))
    return {
        "reading_per_s": statistics.median(each.per_s for each in reading),
        "stopped_per_s": statistics.median(each.per_s for each in stopped),
        "ratio": statistics.median(one.per_s / other.per_s for one, other in pairs),
        "cpu_ratio": statistics.median(one.cpu_s / other.cpu_s for one, other in pairs),
        **soak,
    }


def lines(figures: Figures) -> list[str]:
    """The figures for people."""
    mib = 1 << 20
    first, peak, last = (figures[f"rss_{when}"] / mib for when in ("first", "peak", "last"))
    reading, stopped = (figures[f"{who}_per_s"] / 1e6 for who in ("reading", "stopped"))
    ceiling = first + HALF * BOUND_BYTES / mib
    return [
        f"{2 * HALF:,} subscribers, {HALF} of them stopped",
        f"  the others get   {stopped:.2f} M deliveries/s, {figures['ratio']:.2f}× the run before",
        f"  everybody reads  {reading:.2f} M/s",
        f"  processor time   {figures['cpu_ratio']:.2f}× of the worker's in the run before",
        f"  memory, {SOAK_S} s     {first:.0f} MiB, at most {peak:.0f}, at last {last:.0f}",
        f"  its ceiling      {ceiling:,.0f} MiB",
        f"  cut as slow      {figures['cut']:,} of {figures['stopped']:,} stopped",
    ]


def _flow(gateway: Gateway) -> Round:
    worker = gateway.worker()
    before = cpu_s(worker)
    figures = load(
        "flow", port=gateway.port, subscribers=HALF, size=SIZE, count=MESSAGES, window=WINDOW
    )
    return Round(figures["per_s"], cpu_s(worker) - before)


def _sitters(gateway: Gateway) -> Load:
    sitters = Load("sit", port=gateway.port, subject=SUBJECT, count=HALF)
    sitters.figures()
    return sitters


def _round(gateway: Gateway, *, is_stopped: bool) -> Round:
    sitters = _sitters(gateway)
    if is_stopped:
        sitters.process.send_signal(signal.SIGSTOP)
    figures = _flow(gateway)
    sitters.process.send_signal(signal.SIGCONT)
    sitters.end()
    return figures


def _soak(gateway: Gateway) -> Figures:
    worker = gateway.worker()
    seen = [rss_bytes(worker)]
    cut_before = gateway.cut()
    held: list[Load] = []
    began = fresh_at = time.monotonic()
    while time.monotonic() < began + SOAK_S:
        if time.monotonic() >= fresh_at:
            held.append(_sitters(gateway))
            held[-1].process.send_signal(signal.SIGSTOP)
            fresh_at += FRESH_EVERY_S
        _flow(gateway)
        seen.append(rss_bytes(worker))
    cut = gateway.cut() - cut_before
    for sitters in held:
        sitters.process.send_signal(signal.SIGCONT)
        sitters.end()
    return {
        "rss_first": seen[0],
        "rss_peak": max(seen),
        "rss_last": seen[-1],
        "stopped": len(held) * HALF,
        "cut": cut,
    }
