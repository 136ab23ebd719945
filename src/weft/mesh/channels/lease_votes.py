"""Lease votes for local channels: which gateways agree, and until when.

A gateway grants a name for LEASE_NS of its own clock, from its answer. The holder counts only three
quarters of that, from its request. So a name is not granted twice, even if clocks differ in rate by
ten percent.
"""

from weft.mesh.channels.leases import LEASE_NS

# How long a vote counts, from the request.
COUNTED_NS = LEASE_NS * 3 // 4


class Standing:
    """Votes on one channel, for and against, each with its expiry."""

    def __init__(self, now_ns: int) -> None:
        self._agreed_ns: dict[bytes, int] = {}
        self._refused_ns: dict[bytes, int] = {}
        # When it last had a quorum.
        self.confirmed_ns = now_ns

    def agree(self, node: bytes, asked_ns: int) -> None:
        """Count a vote for the channel, requested at `asked_ns`."""
        self._agreed_ns[node] = max(self._agreed_ns.get(node, 0), asked_ns + COUNTED_NS)
        self._refused_ns.pop(node, None)

    def refuse(self, node: bytes, asked_ns: int) -> None:
        """Count a vote against: the gateway has granted the name to another channel."""
        self._refused_ns[node] = asked_ns + COUNTED_NS
        self._agreed_ns.pop(node, None)

    def is_confirmed(self, majority: int, now_ns: int) -> bool:
        """Return whether a quorum agrees now."""
        is_so = _valid(self._agreed_ns, now_ns) >= majority
        if is_so:
            self.confirmed_ns = now_ns
        return is_so

    def is_refused(self, majority: int, now_ns: int) -> bool:
        """Return whether a quorum has granted the name to other channels."""
        return _valid(self._refused_ns, now_ns) >= majority


def _valid(until_ns: dict[bytes, int], now_ns: int) -> int:
    return sum(end > now_ns for end in until_ns.values())
