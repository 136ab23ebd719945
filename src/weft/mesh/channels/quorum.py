"""Quorum for protected channels: more than half of all known gateways.

An unreachable gateway may be on the other side of a partition and open channels there, so it counts
for LOST_NS more; a gateway that left in order does not.
"""

from collections.abc import Callable, Iterable

from weft.mesh.membership.members import Members

# How long an unreachable gateway counts.
LOST_NS = 3_600_000_000_000
VOTERS_MAX = 8192

# Stores that a gateway became a voter (True) or no longer is one (False).
Write = Callable[[bytes, bool], None]


class Voters:
    """Known gateways including this one; `least` is a lower bound of their number.

    Those known from before a restart count as lost when it begins.
    """

    def __init__(self, own: bytes, least: int = 1) -> None:
        self.own = own
        self.least = least
        self._seen_ns: dict[bytes, int] = {}
        self._write: Write | None = None

    def __len__(self) -> int:
        return max(self.least, 1 + len(self._seen_ns))

    def __contains__(self, node: bytes) -> bool:
        return node == self.own or node in self._seen_ns

    @property
    def majority(self) -> int:
        """Votes needed: more than half."""
        return len(self) // 2 + 1

    def recall(self, nodes: Iterable[bytes], write: Write, now_ns: int) -> None:
        """Restore the voters of before a restart, and store changes from now on."""
        self._write = write
        for node in nodes:
            if node != self.own:
                self._seen_ns.setdefault(node, now_ns)

    def look(self, members: Members, now_ns: int) -> None:
        """Add new gateways; remove departed or long unreachable ones."""
        for member in members.others():
            if member.advert.is_leaving:
                self._forget(member.node)
            elif member.is_there or member.node not in self._seen_ns:
                self._see(member.node, now_ns)
        for node, seen_ns in list(self._seen_ns.items()):
            if now_ns - seen_ns > LOST_NS:
                self._forget(node)

    def _see(self, node: bytes, now_ns: int) -> None:
        if node not in self._seen_ns:
            if len(self._seen_ns) >= VOTERS_MAX:
                return
            self._note(node, is_voter=True)
        self._seen_ns[node] = now_ns

    def _forget(self, node: bytes) -> None:
        if self._seen_ns.pop(node, None) is not None:
            self._note(node, is_voter=False)

    def _note(self, node: bytes, *, is_voter: bool) -> None:
        if self._write is not None:
            self._write(node, is_voter)
