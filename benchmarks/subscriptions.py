"""What do a million subscriptions cost? Time and memory to build, match and change them."""

import gc
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from weft.broker.delivery.arena import Arena
from weft.broker.delivery.outbox import Outbox
from weft.broker.delivery.policy import Bounds
from weft.broker.routing.router import Router

COUNT = 1_000_000
CONNECTIONS = 1_000
# Of every ten subscriptions seven are literal, two hold a `*`, one ends in `>`.
SHAPES = [b"fleet.%d.%d.position"] * 7 + [b"fleet.%d.%d.*"] * 2 + [b"fleet.%d.%d.>"]
BYTES_GOAL = 300


def run(count: int = COUNT) -> dict[str, object]:
    """Build a router of so many subscriptions and ask it everything that costs."""
    arena = Arena()
    bounds = Bounds()
    outboxes = [Outbox(arena, bounds) for _ in range(CONNECTIONS)]
    router = Router()
    gc.collect()
    memory_before = _resident_bytes()
    started = time.process_time()
    for number in range(count):
        router.subscribe(outboxes[number % CONNECTIONS], _pattern(number))
    build_s = time.process_time() - started
    gc.collect()
    figures: dict[str, object] = {
        "subscriptions": len(router),
        "build_s": build_s,
        "subscribe_ns": build_s * 1e9 / count,
        "bytes_per_subscription": (_resident_bytes() - memory_before) / count,
        "bytes_goal": BYTES_GOAL,
    }
    figures |= _matching(router, count)
    figures |= _churn(router, outboxes, count)
    started = time.process_time()
    left = router.leave(outboxes[0])
    figures["leave_ns_per_subscription"] = (time.process_time() - started) * 1e9 / left
    return figures


def lines(figures: dict[str, object]) -> Iterator[str]:
    """The figures as a table for people."""
    yield f"{figures['subscriptions']:,} subscriptions (70 % literal, 20 % *, 10 % >)"
    for name, value in figures.items():
        if name not in {"subscriptions", "bytes_goal"}:
            goal = f"   goal < {BYTES_GOAL}" if name == "bytes_per_subscription" else ""
            yield f"  {name:<34}{value:>14,.1f}{goal}"


def _pattern(number: int) -> bytes:
    return SHAPES[number % len(SHAPES)] % (number % 5_000, number)


def _subject(number: int) -> bytes:
    return b"fleet.%d.%d.position" % (number % 5_000, number)


def _matching(router: Router, count: int) -> dict[str, object]:
    chance = random.Random(7)
    cached = [_subject(chance.randrange(count)) for _ in range(1_000)]
    uncached = [_subject(number) for number in chance.sample(range(count), min(count, 50_000))]
    for subject in cached:
        router.route(subject)
    return {
        "match_cached_ns": _each_ns(router.route, cached * 20),
        "match_uncached_ns": _each_ns(router.route, uncached),
    }


def _churn(router: Router, outboxes: list[Outbox], count: int) -> dict[str, object]:
    # With a full cache of routes, as on a busy gateway.
    for number in range(4_096):
        router.route(_subject(number))
    figures: dict[str, object] = {}
    for name, shape in [
        ("literal", b"fleet.%d.%d.speed"),
        ("star", b"fleet.%d.*.x%d"),
        ("tail", b"fleet.%d.y%d.>"),
    ]:
        patterns = [shape % (number % 5_000, number) for number in range(20_000)]

        def subscribe_and_unsubscribe(pattern: bytes) -> None:
            router.subscribe(outboxes[1], pattern)
            router.unsubscribe(outboxes[1], pattern)

        figures[f"churn_{name}_per_s"] = 1e9 / _each_ns(subscribe_and_unsubscribe, patterns)
    if len(router) != count:
        raise AssertionError(f"{len(router)} subscriptions are left of {count}")
    return figures


def _each_ns(work: Callable[[bytes], object], names: list[bytes]) -> float:
    started = time.process_time()
    for name in names:
        work(name)
    return (time.process_time() - started) * 1e9 / len(names)


def _resident_bytes() -> int:
    if sys.platform != "linux":
        raise SystemExit("memory is read from /proc, which only Linux has")
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
