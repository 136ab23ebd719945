"""Measures Weft's gateway and other brokers side by side: `python -m benchmarks.peers [ROW…]`."""

import sys

from benchmarks.peers.brokers import PEERS
from benchmarks.peers.command import Comparison, main
from benchmarks.peers.measuring import measure
from benchmarks.peers.rows import ROWS

BROKERS = Comparison(
    "python -m benchmarks.peers",
    "Measures Weft's gateway and other brokers side by side.",
    ROWS,
    PEERS,
    measure,
    "nats29",
)

if __name__ == "__main__":
    sys.exit(main(BROKERS))
