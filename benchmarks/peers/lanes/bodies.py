"""What is published: bodies that say which they are, or also when they were sent."""

import itertools
import time
from collections.abc import Iterator

# More than can be on their way: no two of those are equal.
RING = 16_384
# Not counted: whether somebody listens yet, and that nothing more comes.
PROBE, END = b"probe", b"end"


def numbered(size: int) -> list[bytes]:
    """Bodies that differ, to be published over and over again in this order."""
    return [number.to_bytes(8, "little").ljust(size, b".") for number in range(RING)]


def repeated(size: int) -> Iterator[bytes]:
    """The same without an end."""
    return itertools.cycle(numbered(size))


def timed(number: int, size: int) -> bytes:
    """A body with its number and the time by a clock that all processes of the machine share."""
    now = time.perf_counter_ns()
    return (number.to_bytes(8, "little") + now.to_bytes(8, "little")).ljust(size, b".")


def read_timed(body: bytes) -> tuple[int, int]:
    """The number and the time in a body."""
    return int.from_bytes(body[:8], "little"), int.from_bytes(body[8:16], "little")
