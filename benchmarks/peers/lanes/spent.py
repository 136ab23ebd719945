"""The processor time of several processes between two moments, to the nanosecond."""

import time
from pathlib import Path

from benchmarks.peers.lanes.part import Figures, Spenders


class Watch:
    """Takes time and processor time from now on."""

    def __init__(self, spenders: Spenders) -> None:
        self._spenders = spenders
        self._clients_ns = _cpu_ns(spenders.clients)
        self._gateway_ns = _cpu_ns(spenders.gateway)
        self._began = time.perf_counter()

    def figures(self, messages: int, receivers: int) -> Figures:
        """What so many messages took, each delivered to so many."""
        seconds = time.perf_counter() - self._began
        deliveries = messages * receivers
        clients_us = (_cpu_ns(self._spenders.clients) - self._clients_ns) / deliveries / 1e3
        gateway_us = (_cpu_ns(self._spenders.gateway) - self._gateway_ns) / deliveries / 1e3
        return {
            "count": deliveries,
            "per_s": messages / seconds,
            "cpu_us": clients_us + gateway_us,
            "clients_us": clients_us,
            "gateway_us": gateway_us,
        }


def _cpu_ns(pids: list[int]) -> int:
    """What all threads of some processes have used."""
    return sum(
        int(path.read_text().split()[0])
        for pid in pids
        for path in Path(f"/proc/{pid}/task").glob("*/schedstat")
    )
