"""Traffic of a publisher for each subject: totals, times and a decaying rate.

One meter per publisher. Over its limit of flows, those idle for longest are merged into `others`,
so that totals stay exact.
"""

from weft.wire.byteops import exponential

FLOWS_MAX = 1024
# Traffic of this age has the weight 1/e in a rate.
RATE_WINDOW_NS = 2_000_000_000

_WINDOW_NS = float(RATE_WINDOW_NS)
_WINDOW_S = RATE_WINDOW_NS / 1e9


class PublisherTraffic:
    """Traffic of one publisher to one subject."""

    def __init__(self, now_ns: int) -> None:
        self.messages = 0
        self.bytes = 0
        self.first_ns = now_ns
        self.last_ns = now_ns
        # True once the meter has merged it: look it up in the meter again.
        self.is_folded = False
        self._recent_messages = 0.0
        self._recent_bytes = 0.0

    def record(self, messages: int, size: int, now_ns: int) -> None:
        """Count messages and their bytes."""
        if now_ns > self.last_ns:
            decay = self._decay(now_ns)
            self._recent_messages *= decay
            self._recent_bytes *= decay
            self.last_ns = now_ns
        self.messages += messages
        self.bytes += size
        self._recent_messages += messages
        self._recent_bytes += size

    def message_rate(self, now_ns: int) -> float:
        """Current messages per second."""
        return self._recent_messages * self._decay(now_ns) / _WINDOW_S

    def byte_rate(self, now_ns: int) -> float:
        """Current bytes per second."""
        return self._recent_bytes * self._decay(now_ns) / _WINDOW_S

    def fold(self, other: "PublisherTraffic") -> None:
        """Add the totals of another flow; its rate is dropped."""
        self.messages += other.messages
        self.bytes += other.bytes
        self.first_ns = min(self.first_ns, other.first_ns)
        self.last_ns = max(self.last_ns, other.last_ns)
        other.is_folded = True

    def _decay(self, now_ns: int) -> float:
        if now_ns <= self.last_ns:
            return 1.0
        return exponential((self.last_ns - now_ns) / _WINDOW_NS)


class Meter:
    """The flows of one publisher, by subject."""

    def __init__(self, now_ns: int, flows_max: int = FLOWS_MAX) -> None:
        self.others = PublisherTraffic(now_ns)
        self._flows: dict[bytes, PublisherTraffic] = {}
        self._flows_max = max(2, flows_max)

    def __len__(self) -> int:
        return len(self._flows)

    def flow(self, subject: bytes, now_ns: int) -> PublisherTraffic:
        """Return the flow of a subject, created on first use."""
        flow = self._flows.get(subject)
        if flow is None:
            if len(self._flows) >= self._flows_max:
                self._fold_idlest()
            flow = PublisherTraffic(now_ns)
            self._flows[subject] = flow
        return flow

    def has(self, subject: bytes) -> bool:
        """Return whether a subject has a flow of its own."""
        return subject in self._flows

    def message_rate(self, now_ns: int) -> float:
        """Current messages per second to all subjects."""
        rate = self.others.message_rate(now_ns)
        for flow in self._flows.values():
            rate += flow.message_rate(now_ns)
        return rate

    def byte_rate(self, now_ns: int) -> float:
        """Current bytes per second to all subjects."""
        rate = self.others.byte_rate(now_ns)
        for flow in self._flows.values():
            rate += flow.byte_rate(now_ns)
        return rate

    def flows(self) -> dict[bytes, PublisherTraffic]:
        """The flows by subject, without those merged into `others`."""
        return dict(self._flows)

    def total(self) -> PublisherTraffic:
        """Totals of this publisher; without a rate."""
        total = PublisherTraffic(self.others.first_ns)
        for flow in [self.others, *self._flows.values()]:
            total.messages += flow.messages
            total.bytes += flow.bytes
            total.last_ns = max(total.last_ns, flow.last_ns)
        return total

    def _fold_idlest(self) -> None:
        # Half of them at a time, so that the cost of sorting is spread over as many new subjects.
        by_idleness = sorted(self._flows, key=self._last_ns)
        for subject in by_idleness[: self._flows_max // 2]:
            self.others.fold(self._flows.pop(subject))

    def _last_ns(self, subject: bytes) -> int:
        return self._flows[subject].last_ns
