"""A small report with known figures."""

from benchmarks.peers.report import Measurement, PeerFacts, Report, RowFacts

MACHINE = {"processor": "abacus", "cores": "2", "kernel": "6.1", "load_before": "0.00"}
PEERS = [
    PeerFacts("weft", "weft 1", "1", "as it comes", ["weft"], ""),
    PeerFacts("nats29", "nats-server 2.9", "2.9", "as it comes", ["nats-server"], ""),
    PeerFacts("redis", "redis 7", "7", "nothing saved", ["redis-server"], ""),
]
ROW = RowFacts("one", "1→1 & more", {"window": 9}, ["per_s", "cpu_us"], "cpu_us", {"redis": 3})
# By peer: what each of three rounds gave. The machine was twice as slow in the last.
CPU_US = {"weft": (0.1, 0.2, 0.4), "nats29": (0.5, 0.4, 0.8)}


def report() -> Report:
    """Three rounds in which one peer failed twice."""
    measurements = [
        Measurement(number, "one", peer, {"per_s": 1e6 / cpu_us, "cpu_us": cpu_us})
        for peer, rounds in CPU_US.items()
        for number, cpu_us in enumerate(rounds)
    ]
    measurements.append(Measurement(0, "one", "redis", {"per_s": 500_000.0, "cpu_us": 2.0}))
    measurements += [Measurement(n, "one", "redis", {}, "it stalled") for n in (1, 2)]
    return Report(MACHINE, 3, PEERS, [ROW], measurements, "nats29")
