"""Which of the channels that are held here others agree to, and for how long that can be relied on.

A gateway promises a name for LEASE_NS of its own clock, from when it answers. Here only a part of
that counts, from when it was asked: so even if clocks run apart by a tenth, nobody else is promised
the name while this gateway counts on it.
"""

from weft.mesh.channels.leases import LEASE_NS

# How long an answer counts after the question was sent.
COUNTED_NS = LEASE_NS * 3 // 4


class Standing:
    """What is known of one channel: who agrees to it and who does not, each until when."""

    def __init__(self, now_ns: int) -> None:
        self._agreed_ns: dict[bytes, int] = {}
        self._refused_ns: dict[bytes, int] = {}
        # When it last had a majority.
        self.confirmed_ns = now_ns

    def agree(self, node: bytes, asked_ns: int) -> None:
        """A gateway agrees to what it was asked at a time."""
        self._agreed_ns[node] = max(self._agreed_ns.get(node, 0), asked_ns + COUNTED_NS)
        self._refused_ns.pop(node, None)

    def refuse(self, node: bytes, asked_ns: int) -> None:
        """A gateway has promised the name to another channel."""
        self._refused_ns[node] = asked_ns + COUNTED_NS
        self._agreed_ns.pop(node, None)

    def is_confirmed(self, majority: int, now_ns: int) -> bool:
        """Say if a majority agrees now."""
        is_so = _valid(self._agreed_ns, now_ns) >= majority
        if is_so:
            self.confirmed_ns = now_ns
        return is_so

    def is_refused(self, majority: int, now_ns: int) -> bool:
        """Say if a majority has promised the name to others."""
        return _valid(self._refused_ns, now_ns) >= majority


def _valid(until_ns: dict[bytes, int], now_ns: int) -> int:
    return sum(end > now_ns for end in until_ns.values())
