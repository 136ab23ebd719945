"""Measures messages that are kept: `python -m benchmarks.peers.kept [ROW…]`."""

import sys

from benchmarks.peers.command import Comparison, main
from benchmarks.peers.kept.keepers import KEEPERS
from benchmarks.peers.kept.measuring import measure
from benchmarks.peers.kept.rows import ROWS

KEPT = Comparison(
    "python -m benchmarks.peers.kept",
    "Measures Weft's journal and the durable logs of other brokers side by side.",
    ROWS,
    KEEPERS,
    measure,
    "nats-always",
)

if __name__ == "__main__":
    sys.exit(main(KEPT))
