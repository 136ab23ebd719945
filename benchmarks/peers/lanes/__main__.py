"""Measures lanes beside the gateway and others: `python -m benchmarks.peers.lanes [ROW…]`."""

import sys

from benchmarks.peers.command import Comparison, main
from benchmarks.peers.lanes.measuring import measure
from benchmarks.peers.lanes.rows import ROWS
from benchmarks.peers.lanes.ways import WAYS

LANES = Comparison(
    "python -m benchmarks.peers.lanes",
    "Measures lanes beside the gateway, peers of zenoh and pyzmq, from Python.",
    ROWS,
    WAYS,
    measure,
    "zenoh",
    "Nobody is pinned: each way has all cores for its processes and threads.",
)

if __name__ == "__main__":
    sys.exit(main(LANES))
