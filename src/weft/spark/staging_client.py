"""The gateway at the other end of a sink: rows go there in pieces, and are released by a word."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Self

from weft.client.received import Received
from weft.client.sync.connection import Connection
from weft.errors import ConnectionLost, WeftError
from weft.spark.credentials import key_at
from weft.spark.options import WriteOptions

_log = logging.getLogger(__name__)

# Rows go in pieces of about this size.
PIECE_BYTES = 256 << 10
# Everything asked here can be asked again, so a lost answer is no failure; this is.
ANSWER_S = 600.0
# How long it is waited for what the gateway would do by itself, later.
TIDY_S = 5.0
_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True)
class Batch:
    """Whose rows, and of which batch."""

    writer: str
    number: int


class Gate:
    """A connection for one task, or for the driver.

    Raises:
        ConnectionLost: no gateway took it in for as long as one waits.
    """

    def __init__(self, options: WriteOptions) -> None:
        self._connection = _connected(options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def stage(self, batch: Batch, part: str, frames: Iterable[bytes]) -> int:
        """Stage the rows of one part; how many there were. After an error nothing of it is left.

        Raises:
            WeftError: the gateway does not take them.
        """
        try:
            return self._stage_all(batch, part, frames)
        except Exception:
            self._quietly("discard", batch, {"parts": [part]})
            raise

    def _stage_all(self, batch: Batch, part: str, frames: Iterable[bytes]) -> int:
        waiting: list[bytes] = []
        size = first = 0
        for frame in frames:
            if waiting and size + len(frame) > PIECE_BYTES:
                first = self._stage(batch, part, first, waiting)
                waiting, size = [], 0
            waiting.append(frame)
            size += len(frame)
        if first or waiting:
            first = self._stage(batch, part, first, waiting, is_last=True)
        return first

    def release(self, batch: Batch, parts: dict[str, int]) -> None:
        """Have the rows of these parts published, once; return when they are safe.

        Raises:
            WeftError: the gateway does not have them.
        """
        rows = {"parts": list(parts), "rows": list(parts.values())}
        self._ask("release", batch, rows)

    def discard(self, batch: Batch, parts: Iterable[str]) -> None:
        """Have the rows of these parts removed.

        Raises:
            WeftError: the gateway does not do it.
        """
        self._ask("discard", batch, {"parts": list(parts)})

    def end(self, batch: Batch) -> None:
        """Have the gateway forget a writer that writes nothing more."""
        self._quietly("discard", batch, {"parts": [], "end": True})

    def _stage(
        self, batch: Batch, part: str, first: int, frames: list[bytes], *, is_last: bool = False
    ) -> int:
        piece = {"part": part, "first": first, "frames": b"".join(frames), "last": is_last}
        return int(self._ask("stage", batch, piece)["rows"])

    def _quietly(self, question: str, batch: Batch, about: dict[str, Any]) -> None:
        """Ask for what the gateway does by itself later, if it cannot be asked now."""
        try:
            self._ask(question, batch, about, TIDY_S)
        except WeftError as error:
            _log.warning("the gateway still has what was staged, and removes it later: %s", error)

    def _ask(
        self, question: str, batch: Batch, about: dict[str, Any], within_s: float = ANSWER_S
    ) -> Received:
        body = {"writer": batch.writer, "batch": batch.number, **about}
        subject = f"_WEFT.ask.{question}"
        return self._connection.send_request(subject, body, within_s, resend=True)


def _connected(options: WriteOptions) -> Connection:
    ends = monotonic() + options.wait_s
    while True:
        try:
            return Connection(
                options.gateway,
                service=options.service,
                name="spark",
                key=key_at(options.key_file),
                tls=options.tls(),
            )
        except ConnectionLost:
            # It is not there, closing down or full: all of that may pass.
            if monotonic() > ends:
                raise
            sleep(_PAUSE_S)
