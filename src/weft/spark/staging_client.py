"""Client of a gateway's staging requests: stages rows in pieces, then commits or discards them."""

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

# Approximate size of a piece.
PIECE_BYTES = 256 << 10
# All requests are idempotent and are repeated when an answer is lost; this is the final timeout.
ANSWER_S = 600.0
# Timeout of requests that the gateway would otherwise do by itself, later.
TIDY_S = 5.0
_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """Writer and number of a batch."""

    writer: str
    number: int


class StagingClient:
    """Connection of one task, or of the driver.

    Raises:
        ConnectionLost: No gateway accepted it within the timeout.
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

    def stage(self, batch: StagedBatch, part: str, frames: Iterable[bytes]) -> int:
        """Stage the rows of one part; return their number. After an error none is left.

        Raises:
            WeftError: The gateway refuses them.
        """
        try:
            return self._stage_all(batch, part, frames)
        except Exception:
            self._quietly("discard", batch, {"parts": [part]})
            raise

    def _stage_all(self, batch: StagedBatch, part: str, frames: Iterable[bytes]) -> int:
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

    def release(self, batch: StagedBatch, parts: dict[str, int]) -> None:
        """Commit these parts: publish their rows once; return when they are durable.

        Raises:
            WeftError: The gateway does not have them.
        """
        rows = {"parts": list(parts), "rows": list(parts.values())}
        self._ask("release", batch, rows)

    def discard(self, batch: StagedBatch, parts: Iterable[str]) -> None:
        """Discard the rows of these parts.

        Raises:
            WeftError: The gateway refuses it.
        """
        self._ask("discard", batch, {"parts": list(parts)})

    def end(self, batch: StagedBatch) -> None:
        """Let the gateway forget a writer that has finished."""
        self._quietly("discard", batch, {"parts": [], "end": True})

    def _stage(
        self,
        batch: StagedBatch,
        part: str,
        first: int,
        frames: list[bytes],
        *,
        is_last: bool = False,
    ) -> int:
        piece = {"part": part, "first": first, "frames": b"".join(frames), "last": is_last}
        return int(self._ask("stage", batch, piece)["rows"])

    def _quietly(self, question: str, batch: StagedBatch, about: dict[str, Any]) -> None:
        """Request an action that the gateway does by itself later, if the request fails."""
        try:
            self._ask(question, batch, about, TIDY_S)
        except WeftError as error:
            _log.warning("the gateway removes staged rows later: %s", error)

    def _ask(
        self, question: str, batch: StagedBatch, about: dict[str, Any], within_s: float = ANSWER_S
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
            # The gateway is down, closing down or full, which may be temporary.
            if monotonic() > ends:
                raise
            sleep(_PAUSE_S)
