"""What is measured: one row for each load, and the figures that each gives."""

from dataclasses import dataclass, field

PAYLOAD_BYTES = 128
CONNECTIONS = 5000
REQUESTS = 10_000
# Bounded by time, so that a slow broker is measured for as long as a fast one.
_FLOW: dict[str, int | float] = {
    "size": PAYLOAD_BYTES,
    "count": 1_000_000_000,
    "seconds": 1.0,
    "warm": 0.2,
}
_CONNECT: dict[str, int | float] = {"count": CONNECTIONS, "window": 100}

METRICS = {
    "per_s": "per second",
    "cpu_us": "CPU µs each",
    "p50_us": "p50 µs",
    "p99_us": "p99 µs",
    "kib": "KiB each",
    "own_percent": "generator's core %",
    "clients_us": "… of the clients",
    "gateway_us": "… of the gateway",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One load: how the generator is called for it, what of its figures counts and is charted."""

    name: str
    title: str
    command: str
    options: dict[str, int | float]
    metrics: tuple[str, ...] = ("per_s", "cpu_us", "own_percent")
    charted: str = "cpu_us"
    # For peers that would take minutes for the window of the others.
    windows: dict[str, int] = field(default_factory=dict)
    # Peers that have no such thing.
    left_out: frozenset[str] = frozenset()

    def options_for(self, peer: str) -> dict[str, int | float]:
        """What the load generator is told when this peer is measured."""
        window = {"window": self.windows[peer]} if peer in self.windows else {}
        return {**self.options, **window}


def _flow(name: str, title: str, **options: int) -> Row:
    return Row(name, title, "flow", {**_FLOW, **options})


def _patterns(name: str, title: str, subjects: int) -> Row:
    options = {**_FLOW, "patterns": 10_000, "subjects": subjects, "window": 10_000}
    # It compares every message with every pattern.
    windows = {"redis": 200}
    title = f"1→1 of 10,000 patterns, {title}, 128 B, 10,000 in flight"
    return Row(name, title, "flow", options, windows=windows)


ROWS = {
    row.name: row
    for row in (
        _flow("one-16", "1→1, 16 B, 20,000 in flight", size=16, window=20_000),
        _flow("one-128", "1→1, 128 B, 10,000 in flight", window=10_000),
        _flow("one-1k", "1→1, 1 KiB, 1,500 in flight", size=1 << 10, window=1500),
        _flow("one-16k", "1→1, 16 KiB, 100 in flight", size=16 << 10, window=100),
        _flow("few-in-flight", "1→1, 128 B, 100 in flight", window=100),
        _flow("fan-100", "1→100, 128 B, 500 in flight", subscribers=100, window=500),
        _flow("fan-1000", "1→1,000, 128 B, 250 in flight", subscribers=1000, window=250),
        _flow("fan-1000-few", "1→1,000, 128 B, 100 in flight", subscribers=1000, window=100),
        _patterns("patterns", "one subject", subjects=1),
        _patterns("patterns-in-turn", "1,000 subjects in turn", subjects=1000),
        _flow("pairs", "50→50 pairs, 128 B, 500 in flight each", flows=50, window=500),
        Row(
            "request",
            "request and reply, 128 B, one at a time, client never sleeps",
            "request",
            {"size": PAYLOAD_BYTES, "count": REQUESTS},
            ("p50_us", "p99_us", "cpu_us"),
            "p50_us",
        ),
        Row(
            "pace",
            "publish to deliver, 128 B, 1,000 a second, all processes sleep in between",
            "pace",
            {"size": PAYLOAD_BYTES, "count": 2000, "rate": 1000},
            ("p50_us", "p99_us", "cpu_us"),
            "p50_us",
        ),
        Row(
            "connects",
            f"connections opened, with handshake, {CONNECTIONS:,}, 100 at once",
            "connect",
            _CONNECT,
        ),
        # The last, as it leaves the most sockets that the kernel keeps for a while.
        Row(
            "idle",
            f"memory of an idle connection with one subscription, {CONNECTIONS:,} of them",
            "idle",
            {**_CONNECT, "subscribe": 1},
            ("kib",),
            "kib",
        ),
    )
}
