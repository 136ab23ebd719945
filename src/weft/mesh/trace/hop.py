"""Record of one traced batch at one gateway: how it arrived and where it was forwarded.

Only traces have one: recording every batch would cost as much as forwarding it.
"""

from typing import NamedTuple

from weft.mesh.routing.forward_header import ENTRY_BYTES, ForwardHeader, entries_at, read
from weft.wire.byteops import u32_at

# Reasons for not forwarding.
NO_RELAY = "NoRelay"
NO_WAY = "NoWay"
TOO_FAR = "TooFar"
SHED = "Shed"


class Onward(NamedTuple):
    """Next gateway, or one that was not reached for a reason."""

    number: int
    reason: str = ""


class TracedHop:
    """Passage of one forwarding header through this gateway."""

    def __init__(self, header: bytes) -> None:
        self.path = read(header).path
        self.onward: list[Onward] = []

    def stopped(self, header: bytes, at: int, end: int, reason: str) -> None:
        """Record a branch of the plan, by the offsets of its entries, that is not forwarded."""
        self.onward += [
            Onward(u32_at(header, entry), reason) for entry in range(at, end, ENTRY_BYTES)
        ]

    def missed(self, number: int, reason: str) -> None:
        """Record one unreachable gateway."""
        self.onward.append(Onward(number, reason))

    def went(self, header: bytearray, is_taken: bool) -> None:
        """Record a branch that its link accepted or, for want of room, did not."""
        at = entries_at(header)
        if is_taken:
            self.onward.append(Onward(u32_at(header, at)))
        else:
            self.stopped(bytes(header), at, len(header), SHED)


class Sprout(NamedTuple):
    """Branch of a trace: its forwarding header, and why it was not sent."""

    envelope: ForwardHeader
    reason: str = ""
