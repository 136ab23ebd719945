"""Loops over subscriptions, tracked so that drain() can wait for their bodies.

A message counts as processed when the loop requests the next one or ends. `break` sends no signal,
so every loop has an iterator of its own, which is finalized when the loop ends.
"""

import weakref
from collections.abc import Callable


class Loop:
    """One loop and the message its body is processing; `release` is called afterwards."""

    def __init__(self, loops: "Loops", release: Callable[[bytes], object]) -> None:
        self._release = release
        self._frame: bytes | None = None
        self._worker: object = None
        loops.add(self)

    def __del__(self) -> None:
        self.finish()

    def begin(self, frame: bytes, worker: object) -> None:
        """Record the message that the body processes on this task or thread."""
        self._frame = frame
        self._worker = worker

    def finish(self) -> None:
        """Release the message of the body, if it has one."""
        frame, self._frame = self._frame, None
        self._worker = None
        if frame is not None:
            self._release(frame)

    def is_body(self, worker: object) -> bool:
        """Return whether this task or thread is in the body, with a message."""
        return self._worker == worker


class Loops:
    """The loops over all subscriptions of one connection."""

    def __init__(self) -> None:
        self._all: weakref.WeakSet[Loop] = weakref.WeakSet()
        self.add = self._all.add

    def finish(self, worker: object) -> None:
        """Release the message of the calling loop body: drain() there must not wait for itself."""
        for loop in list(self._all):
            if loop.is_body(worker):
                loop.finish()
