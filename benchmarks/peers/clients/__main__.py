"""Measures Weft's Python clients and others: `python -m benchmarks.peers.clients [ROW…]`."""

import sys

from benchmarks.peers.clients.libraries import LIBRARIES, measure
from benchmarks.peers.clients.rows import ROWS
from benchmarks.peers.command import Comparison, main

CLIENTS = Comparison(
    "python -m benchmarks.peers.clients",
    "Measures Weft's Python clients and others side by side.",
    ROWS,
    LIBRARIES,
    measure,
    "nats-py",
)

if __name__ == "__main__":
    sys.exit(main(CLIENTS))
