"""Whose agreement counts when a protected channel is opened: more than half of all gateways.

A gateway that was lost may be cut off and open channels itself, so it counts for a while longer;
one that left in order does not.
"""

from collections.abc import Callable, Iterable

from weft.mesh.membership.members import Members

# For so long a gateway that cannot be reached is counted.
LOST_NS = 3_600_000_000_000
VOTERS_MAX = 8192

# Writes down that a gateway counts from now on, or no more.
Write = Callable[[bytes, bool], None]


class Voters:
    """The gateways that one knows of, this one among them; `least` is how many there are at least.

    Those of an earlier life of this gateway count as lost when it begins.
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
        """How many are more than half."""
        return len(self) // 2 + 1

    def recall(self, nodes: Iterable[bytes], write: Write, now_ns: int) -> None:
        """Count those that an earlier life of this gateway knew, and write down who is new."""
        self._write = write
        for node in nodes:
            if node != self.own:
                self._seen_ns.setdefault(node, now_ns)

    def look(self, members: Members, now_ns: int) -> None:
        """Take note of who is there, who left, and who has been away for too long."""
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
