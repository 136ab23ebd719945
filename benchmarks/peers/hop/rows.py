"""What is measured of a hop: who subscribes is at one gateway, who publishes at the other."""

from benchmarks.peers.rows import PAYLOAD_BYTES, Row

_FLOW: dict[str, int | float] = {
    "size": PAYLOAD_BYTES,
    "count": 1_000_000_000,
    "seconds": 1.0,
    "warm": 0.2,
}
_PACE: dict[str, int | float] = {"size": PAYLOAD_BYTES, "count": 2000, "rate": 1000}
_LATENCIES = ("p50_us", "p99_us", "cpu_us")
NEAR = "near-"


def _flow(name: str, title: str, **options: int) -> Row:
    return Row(name, title, "flow", {**_FLOW, **options})


ROWS = {
    row.name: row
    for row in (
        _flow("one-16", "1→1 over a hop, 16 B, 20,000 in flight", size=16, window=20_000),
        _flow("one-128", "1→1 over a hop, 128 B, 10,000 in flight", window=10_000),
        _flow("one-1k", "1→1 over a hop, 1 KiB, 1,500 in flight", size=1 << 10, window=1500),
        _flow("few-in-flight", "1→1 over a hop, 128 B, 100 in flight", window=100),
        _flow("fan-100", "1→100 over a hop, 128 B, 500 in flight", subscribers=100, window=500),
        _flow("pairs", "50→50 over a hop, 128 B, 500 in flight each", flows=50, window=500),
        Row(
            "pace",
            "publish to deliver over a hop, 128 B, 1,000 a second",
            "pace",
            _PACE,
            _LATENCIES,
            "p50_us",
        ),
        Row(
            f"{NEAR}pace",
            "the same without the hop: both at one of the two",
            "pace",
            _PACE,
            _LATENCIES,
            "p50_us",
        ),
    )
}
