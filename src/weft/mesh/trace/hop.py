"""What became of one envelope at one gateway, for those who trace it: how it came, where it went.

Only what is traced has one: to note this of every envelope would cost as much as passing it on.
"""

from typing import NamedTuple

from weft.mesh.routing.forward_header import ENTRY_BYTES, Envelope, entries_at, read
from weft.wire.byteops import u32_at

# Why something did not go on.
NO_RELAY = "NoRelay"
NO_WAY = "NoWay"
TOO_FAR = "TooFar"
SHED = "Shed"


class Onward(NamedTuple):
    """A gateway next on the way, or one that is not to be reached for a reason."""

    number: int
    reason: str = ""


class Passage:
    """One envelope on its way through a gateway."""

    def __init__(self, header: bytes) -> None:
        self.path = read(header).path
        self.onward: list[Onward] = []

    def stopped(self, header: bytes, at: int, end: int, reason: str) -> None:
        """A part of the tree, given by where its entries lie, does not go on."""
        self.onward += [
            Onward(u32_at(header, entry), reason) for entry in range(at, end, ENTRY_BYTES)
        ]

    def missed(self, number: int, reason: str) -> None:
        """One gateway is not to be reached."""
        self.onward.append(Onward(number, reason))

    def went(self, header: bytearray, is_taken: bool) -> None:
        """A part of the tree was handed to its link, which took it or has too much to send."""
        at = entries_at(header)
        if is_taken:
            self.onward.append(Onward(u32_at(header, at)))
        else:
            self.stopped(bytes(header), at, len(header), SHED)


class Sprout(NamedTuple):
    """What left by one link, or did not: the tree that it was to take, and why it did not."""

    envelope: Envelope
    reason: str = ""
