"""The callback of a receiver: every body is compared with the one that must come next.

It tells the publisher by a pipe, with a byte for every so many messages, so that no more than a
window is on its way whichever library carries them, and nobody looks again and again.
"""

import os
import time
from collections.abc import Callable
from typing import Any

from benchmarks.peers.lanes.bodies import END, PROBE, RING, numbered, read_timed
from benchmarks.peers.lanes.part import Part

# A receiver tells after so many messages of a flow; of what is timed after each.
STEP = 1024
FOUND, TOLD, WRONG = b"f", b"t", b"w"
# The share of the first latencies that does not count.
_COLD = 0.1


class Heard:
    """What one receiver has heard; `end` is called when nothing more comes."""

    def __init__(self, part: Part, end: Callable[[], object]) -> None:
        self.count = 0
        self.callback = self.message if part.case == "flow" else self.timed
        self._took_ns: list[int] = []
        self._bodies = numbered(part.size)
        self._pipe = part.pipes[0]
        self._end = end
        self._is_found = False

    def message(self, body: bytes) -> None:
        """One of a flow came."""
        count = self.count
        if body != self._bodies[count % RING]:
            self._other(body)
            return
        self.count = count = count + 1
        if not count % STEP:
            os.write(self._pipe, TOLD)

    def timed(self, body: bytes) -> None:
        """One that says when it was sent came."""
        now = time.perf_counter_ns()
        if body in (PROBE, END):
            self._other(body)
            return
        number, sent = read_timed(body)
        if number != self.count:
            self._other(body)
            return
        self._took_ns.append(now - sent)
        self.count += 1
        os.write(self._pipe, TOLD)

    def facts(self) -> dict[str, Any]:
        """What there is to say at the end."""
        return {"count": self.count, **latencies(self._took_ns)}

    def _other(self, body: bytes) -> None:
        if body == END:
            self._end()
        elif body != PROBE:
            os.write(self._pipe, WRONG)
        elif not self._is_found:
            self._is_found = True
            os.write(self._pipe, FOUND)


def latencies(took_ns: list[int]) -> dict[str, float]:
    """The middle and the tail, without what was measured first; nothing of nothing."""
    ordered = sorted(took_ns[int(len(took_ns) * _COLD) :])
    if not ordered:
        return {}
    return {
        "p50_us": ordered[len(ordered) // 2] / 1e3,
        "p99_us": ordered[len(ordered) * 99 // 100] / 1e3,
    }
