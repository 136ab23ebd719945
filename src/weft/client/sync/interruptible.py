"""Waiting in pieces, so that no Ctrl-C is lost.

Python notes a signal and raises it once the main thread goes on. A signal that comes between its
last look and its rest in the kernel does not end the rest; nor does one that the system hands to
another thread. So nobody rests for longer than a piece without looking.
"""

import concurrent.futures
from typing import TypeVar

_Result = TypeVar("_Result")

# How late an interrupt may be at worst.
PIECE_S = 0.5


def piece_of(left_s: float | None) -> float:
    """How long to rest now, if this much time is left; None for without end."""
    return PIECE_S if left_s is None else min(left_s, PIECE_S)


def result_of(future: concurrent.futures.Future[_Result]) -> _Result:
    """Wait for a result, however long it takes."""
    while not future.done():
        try:
            return future.result(PIECE_S)
        except TimeoutError:
            # Of this wait, or what the future came to: then it is done.
            continue
    return future.result()
