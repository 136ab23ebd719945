"""Close blocking connections at exit, so that their buffered messages are sent."""

import atexit
import concurrent.futures
import time
import warnings
import weakref
from typing import Protocol

from weft.client.sync.loop_thread import until_ended

# Limit for closing all of them together.
EXIT_S = 5.0


class Closable(Protocol):
    """Interface of a connection that is closed at exit if the program has not closed it."""

    def begin_close(self) -> concurrent.futures.Future[None] | None:
        """Start to flush and disconnect; return None if it is already closed."""


_open: weakref.WeakSet[Closable] = weakref.WeakSet()


def remember(connection: Closable) -> None:
    """Register a connection to be closed at exit, unless it is closed by then."""
    _open.add(connection)


def warn_of(connection: object) -> None:
    """Emit a ResourceWarning that a connection was not closed."""
    warnings.warn(
        f"unclosed {connection!r}: call close(), or use it in a with statement",
        ResourceWarning,
        stacklevel=2,
        source=connection,
    )


@atexit.register
def close_all() -> None:
    """Close the open connections within `EXIT_S`; messages not sent by then are lost."""
    deadline = time.monotonic() + EXIT_S
    closing = []
    for connection in list(_open):
        future = connection.begin_close()
        if future is not None:
            warn_of(connection)
            closing.append(future)
    concurrent.futures.wait(closing, timeout=max(deadline - time.monotonic(), 0.0))
    until_ended(deadline)
