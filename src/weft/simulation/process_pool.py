"""Process pools that import nothing from the working directory.

The `multiprocessing` module builds the command line of its processes itself, and would put the
working directory first on their path.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.pool import Pool

_SAFE_PATH = "PYTHONSAFEPATH"


@contextmanager
def process_pool(processes: int) -> Iterator[Pool]:
    """Yield a pool that is terminated with the block."""
    before = os.environ.get(_SAFE_PATH)
    # Kept for the whole block: a pool replaces processes that die.
    os.environ[_SAFE_PATH] = "1"
    try:
        # Spawned, not forked: the caller may have threads.
        with get_context("spawn").Pool(processes) as pool:
            yield pool
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before
