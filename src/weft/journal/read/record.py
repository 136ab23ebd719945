"""What is found in a journal: messages, and holes where there should be some."""

from typing import NamedTuple


class Kept(NamedTuple):
    """A message of a journal: the whole frame, and its position."""

    position: int
    frame: bytes


class Hole(NamedTuple):
    """Positions that there are no messages for, and why."""

    first: int
    last: int
    why: str
