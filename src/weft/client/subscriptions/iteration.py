"""What the body of a loop over a subscription deals with, so that a drain can wait for it.

A message counts as dealt with when the loop asks for the next one or is left. `break` tells nobody:
so every loop has an iterator of its own, which is gone when the loop is.
"""

import weakref
from collections.abc import Callable


class Loop:
    """One loop, and the message that its body has; `release` is told when it is dealt with."""

    def __init__(self, loops: "Loops", release: Callable[[bytes], object]) -> None:
        self._release = release
        self._frame: bytes | None = None
        self._worker: object = None
        loops.add(self)

    def __del__(self) -> None:
        self.finish()

    def begin(self, frame: bytes, worker: object) -> None:
        """The body gets a message, on this task or thread."""
        self._frame = frame
        self._worker = worker

    def finish(self) -> None:
        """The body has dealt with its message, if it had one."""
        frame, self._frame = self._frame, None
        self._worker = None
        if frame is not None:
            self._release(frame)

    def is_body(self, worker: object) -> bool:
        """Say if this task or thread is in the body, with a message."""
        return self._worker == worker


class Loops:
    """The loops over the subscriptions of one connection."""

    def __init__(self) -> None:
        self._all: weakref.WeakSet[Loop] = weakref.WeakSet()
        self.add = self._all.add

    def finish(self, worker: object) -> None:
        """A body that waits until all is dealt with must not wait for itself."""
        for loop in list(self._all):
            if loop.is_body(worker):
                loop.finish()
