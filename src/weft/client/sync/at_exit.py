"""The end of a program that did not close its blocking connections: their messages still leave."""

import atexit
import concurrent.futures
import time
import warnings
import weakref
from typing import Protocol

from weft.client.sync.loop_thread import until_ended

# How long all of them together may keep a program from ending.
EXIT_S = 5.0


class Closable(Protocol):
    """A connection that is closed at exit if the program has not closed it."""

    def begin_close(self) -> concurrent.futures.Future[None] | None:
        """Begin to send what is buffered and to leave; None if there is nothing to do."""


_open: weakref.WeakSet[Closable] = weakref.WeakSet()


def remember(connection: Closable) -> None:
    """Close a connection at exit, unless it is closed by then."""
    _open.add(connection)


def warn_of(connection: object) -> None:
    """Warn that a connection was never closed."""
    warnings.warn(
        f"unclosed {connection!r}: call close(), or use it in a with statement",
        ResourceWarning,
        stacklevel=2,
        source=connection,
    )


@atexit.register
def close_all() -> None:
    """Close what is open, within EXIT_S; what is not sent by then is lost."""
    deadline = time.monotonic() + EXIT_S
    closing = []
    for connection in list(_open):
        future = connection.begin_close()
        if future is not None:
            warn_of(connection)
            closing.append(future)
    concurrent.futures.wait(closing, timeout=max(deadline - time.monotonic(), 0.0))
    until_ended(deadline)
