"""Measures a hop between two gateways: `python -m benchmarks.peers.hop [ROW…]`."""

import sys

from benchmarks.peers.command import Comparison, main
from benchmarks.peers.hop.measuring import measure
from benchmarks.peers.hop.pairs import PAIRS
from benchmarks.peers.hop.rows import ROWS

HOP = Comparison(
    "python -m benchmarks.peers.hop",
    "Measures a hop between two gateways beside one between two servers of NATS.",
    ROWS,
    PAIRS,
    measure,
    "nats29",
)

if __name__ == "__main__":
    sys.exit(main(HOP))
