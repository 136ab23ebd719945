"""What is measured from client to client."""

from benchmarks.peers.rows import PAYLOAD_BYTES, Row

SECONDS = 1.0
TIMED_S = 2.0
_SPENT = ("cpu_us", "clients_us", "gateway_us")


def _flow(name: str, title: str, **options: int) -> Row:
    given = {"seconds": SECONDS, "size": PAYLOAD_BYTES, "receivers": 1, **options}
    return Row(name, f"{title}, 8,192 in flight", "flow", given, ("per_s", *_SPENT))


def _timed(name: str, title: str, command: str) -> Row:
    options: dict[str, int | float] = {"seconds": TIMED_S, "size": PAYLOAD_BYTES, "receivers": 1}
    return Row(name, title, command, options, ("p50_us", "p99_us", *_SPENT), "p50_us")


ROWS = {
    row.name: row
    for row in (
        _flow("one-128", "1→1, 128 B"),
        _flow("one-16", "1→1, 16 B", size=16),
        _flow("four-128", "1→4, 128 B", receivers=4),
        _timed("pace", "publish to callback, 128 B, a millisecond in between", "pace"),
        _timed(
            "turns", "publish to callback, 128 B, each after the previous one has arrived", "turns"
        ),
        _timed("request", "request and reply, one at a time", "request"),
    )
}
