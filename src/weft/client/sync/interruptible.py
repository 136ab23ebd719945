"""Waits in slices of at most `PIECE_S`, so that Ctrl-C is not missed.

Python records a signal and raises it once the main thread runs again. A signal that arrives between
the last check and the blocking call does not interrupt that call, and neither does one that the
kernel delivers to another thread. So no wait lasts longer than one slice.
"""

import concurrent.futures
from typing import TypeVar

_Result = TypeVar("_Result")

# Maximum delay of an interrupt.
PIECE_S = 0.5


def piece_of(left_s: float | None) -> float:
    """Return the length of the next slice for the remaining time; None means no limit."""
    return PIECE_S if left_s is None else min(left_s, PIECE_S)


def result_of(future: concurrent.futures.Future[_Result]) -> _Result:
    """Wait for the result of a future, without limit."""
    while not future.done():
        try:
            return future.result(PIECE_S)
        except TimeoutError:
            # Either this slice ended, or the future failed with TimeoutError: then it is done.
            continue
    return future.result()
