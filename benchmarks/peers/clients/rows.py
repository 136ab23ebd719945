"""What is measured on the client libraries."""

from benchmarks.peers.rows import Row

SECONDS = 1.0

ROWS = {
    row.name: row
    for row in (
        Row(
            "bytes",
            "publish to callback, 128 B, 8,000 in flight",
            "bytes",
            {"seconds": SECONDS},
            ("per_s", "cpu_us"),
        ),
        Row(
            "typed",
            "publish to callback, six typed fields written and read, 8,000 in flight",
            "typed",
            {"seconds": SECONDS},
            ("per_s", "cpu_us"),
        ),
        Row(
            "request",
            "request and reply, one at a time",
            "request",
            {"seconds": SECONDS},
            ("p50_us", "p99_us", "cpu_us"),
            "p50_us",
        ),
    )
}
