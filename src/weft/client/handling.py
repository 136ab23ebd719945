"""The messages of a blocking subscription on their way through its handler, where callbacks run."""

from collections.abc import Callable

from weft.client.callbacks import Callbacks
from weft.client.intake import Intake
from weft.client.received import BlockingReceived, Publisher, blocking_received

_RELEASED_TOGETHER = 64
# Of larger ones fewer: what is released late is read late.
_MUCH_BYTES = 64 << 10

Handler = Callable[[BlockingReceived], object]


class Handling:
    """Gives a handler one message after the other; what it raises is told to `report`.

    `is_discarding` may be set at any time: from then on messages are thrown away.
    """

    def __init__(
        self,
        handler: Handler,
        connection: Publisher,
        callbacks: Callbacks,
        report: Callable[[Exception], object],
    ) -> None:
        self.is_discarding = False
        self._handler = handler
        self._connection = connection
        self._callbacks = callbacks
        self._intake: Intake = callbacks.intake
        self._report = report

    def run(self, frames: list[bytes]) -> int:
        """Handle messages that came one after the other; how many they were.

        What is no Exception, like an interrupt, is raised, and the rest is due again.
        """
        count = 0
        size = 0
        released = 0
        try:
            for frame in frames:
                count += 1
                size += len(frame)
                self._handle(frame)
                # The intake is told of several together.
                if count - released >= _RELEASED_TOGETHER or size > _MUCH_BYTES:
                    self._intake.release(size, count - released)
                    released = count
                    size = 0
        finally:
            if count > released:
                self._intake.release(size, count - released)
            if count < len(frames):
                self._callbacks.put_back(self.run, frames[count:])
        return count

    def _handle(self, frame: bytes) -> None:
        try:
            if not (self.is_discarding or self._callbacks.is_discarding):
                self._handler(blocking_received(frame, self._connection))
        except Exception as error:
            self._report(error)
