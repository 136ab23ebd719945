"""One measurement: two fresh brokers on one core, the load generator on another."""

import contextlib

from benchmarks.peers.hop.pairs import Pair
from benchmarks.peers.hop.rows import NEAR
from benchmarks.peers.measuring import BROKER_CORE, LOAD_CORE, derived, pinned
from benchmarks.peers.rows import Row
from benchmarks.running import load


def measure(row: Row, pair: Pair) -> dict[str, float]:
    """The figures of one load on one pair.

    Raises:
        Failed: a broker cut a connection, lost something or stalled.
    """
    with contextlib.ExitStack() as stack:
        with pinned(BROKER_CORE):
            linked = stack.enter_context(pair.running())
        near, far = linked.ports
        options = {
            "protocol": pair.protocol,
            "port": near,
            "far_port": near if row.name.startswith(NEAR) else far,
            "pids": ",".join(map(str, linked.pids)),
            **row.options_for(pair.name),
        }
        with pinned(LOAD_CORE):
            return derived(load(row.command, **options))
