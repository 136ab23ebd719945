"""What is measured of messages that are kept."""

from benchmarks.peers.rows import PAYLOAD_BYTES, Row

_BOUNDS: dict[str, int | float] = {
    "size": PAYLOAD_BYTES,
    "count": 1_000_000_000,
    "seconds": 2.0,
    "warm": 0.5,
}

ROWS = {
    row.name: row
    for row in (
        Row(
            "acknowledged",
            "acknowledged publishes, 128 B, 1,000 not acknowledged yet",
            "acknowledged",
            {**_BOUNDS, "window": 1000},
            ("per_s", "cpu_us", "p50_us", "p99_us", "own_percent"),
        ),
        # The client sleeps: the system needs its core, too, for what it writes.
        Row(
            "one-at-a-time",
            "acknowledged publishes, 128 B, one at a time",
            "acknowledged",
            {**_BOUNDS, "window": 1},
            ("p50_us", "p99_us", "cpu_us"),
            "p50_us",
        ),
        Row(
            "delivered",
            "publishes without acknowledgement to one subscriber, 128 B, 10,000 in flight",
            "flow",
            {**_BOUNDS, "window": 10_000},
            # Who adds to a stream of redis publishes to nobody.
            left_out=frozenset({"redis-always", "redis-everysec"}),
        ),
    )
}
