"""Records of a journal: messages, and ranges of missing positions."""

from typing import NamedTuple


class JournalRecord(NamedTuple):
    """Message of a journal: the whole frame and its position."""

    position: int
    frame: bytes


class Hole(NamedTuple):
    """Range of positions without messages, and the reason."""

    first: int
    last: int
    why: str
