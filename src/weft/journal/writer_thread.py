"""Writer thread of a journal: writes and syncs batches, and reports written and durable ones.

Only this thread waits for the disk. After a failed write it keeps the batch and retries every
RETRY_S, so that no accepted message is lost, until the thread is ended.
"""

import math
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic, time_ns
from typing import Literal, NamedTuple

from weft.broker.journal.batcher import JournalBatch
from weft.journal.segment.file_names import JournalFolder, day_of
from weft.journal.segment.writer import OpenSegment

RETRY_S = 1.0

Sync = Literal["ack", "interval", "none"]


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """When to sync, and when a segment is full.

    `ack`: at once if a publisher awaits an acknowledgement, otherwise every `sync_s` or after
    `sync_bytes`. `interval`: every `interval_s`. `none`: whenever the system does.
    """

    sync: Sync = "ack"
    sync_s: float = 0.005
    sync_bytes: int = 1 << 20
    interval_s: float = 1.0
    segment_bytes: int = 64 << 20
    segment_s: float = 300.0


class Written(NamedTuple):
    """A batch is in the file; its buffer may be reused."""

    batch: JournalBatch


class Safe(NamedTuple):
    """Everything before a position is as durable as the rules require."""

    position: int


class WriteFailed(NamedTuple):
    """Writing has failed; the thread retries."""

    problem: str


class Recovered(NamedTuple):
    """Writing works again."""


class SegmentCompleted(NamedTuple):
    """A segment is complete."""


Report = Written | Safe | WriteFailed | Recovered | SegmentCompleted


class Scribe:
    """Writes the journal of one node from a position on; calls `report` on its own thread."""

    def __init__(
        self,
        place: JournalFolder,
        rules: WriterSettings,
        position: int,
        report: Callable[[Report], None],
    ) -> None:
        self._place = place
        self._rules = rules
        self._report = report
        self._position = position
        self._segment: OpenSegment | None = None
        # File of a segment without messages; if it is left after an error, it blocks the next one.
        self._leftover: Path | None = None
        self._unsynced = 0
        self._synced_at = -math.inf
        # When to sync, and when to complete the segment.
        self._sync_at: float | None = None
        self._end_at = 0.0
        self._is_failing = False
        self._is_ending = threading.Event()
        self._batches: queue.SimpleQueue[JournalBatch | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="weft-journal", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def write(self, batch: JournalBatch) -> None:
        """Queue a batch; Written follows."""
        self._batches.put(batch)

    def end(self, within_s: float) -> bool:
        """Write all queued batches, complete the segment and join; False after `within_s`."""
        self._is_ending.set()
        self._batches.put(None)
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            try:
                batch = self._batches.get(timeout=self._patience_s())
            except queue.Empty:
                self._do(self._keep_time)
                continue
            if batch is None:
                self._do(self._finish)
                return
            self._do(partial(self._append, batch))
            self._report(Written(batch))
            self._do(self._keep_time)

    def _do(self, step: Callable[[], None]) -> None:
        """Run a step, repeatedly while the disk fails."""
        while True:
            try:
                if self._is_failing:
                    # Shows whether the disk accepts writes again, whatever the step is.
                    self._begin()
                step()
            except OSError as error:
                self._refused(error)
                if self._is_ending.wait(RETRY_S):
                    return
            else:
                if self._is_failing:
                    self._is_failing = False
                    self._report(Recovered())
                    if self._unsynced == 0:
                        # A failed sync cannot be repaired; the publishers got an error.
                        self._report(Safe(self._position))
                return

    def _refused(self, error: OSError) -> None:
        # Recovery will find its messages. After a failed sync the contents of the file are
        # uncertain, so nothing more is written to it.
        if self._segment is not None:
            self._segment.abandon()
            self._segment = None
        self._unsynced = 0
        self._sync_at = None
        self._is_failing = True
        self._report(WriteFailed(error.strerror or str(error)))

    def _begin(self) -> OpenSegment:
        if self._leftover is not None:
            self._leftover.unlink(missing_ok=True)
        self._leftover = self._place.open(self._position)
        self._segment = OpenSegment(self._place, self._position)
        self._end_at = monotonic() + self._rules.segment_s
        return self._segment

    def _append(self, batch: JournalBatch) -> None:
        segment = self._segment or self._begin()
        segment.append(batch)
        self._leftover = None
        self._position = segment.next
        self._unsynced += batch.size
        if self._rules.sync != "ack":
            self._report(Safe(self._position))
        if self._rules.sync == "ack" and batch.is_awaited:
            # Batches that arrive during the sync share the next one: group commit.
            self._sync_at = -math.inf
        elif self._sync_at is None and self._rules.sync != "none":
            wait_s = self._rules.sync_s if self._rules.sync == "ack" else self._rules.interval_s
            self._sync_at = self._synced_at + wait_s

    def _keep_time(self) -> None:
        """Sync and complete the segment if due."""
        segment = self._segment
        if segment is None:
            return
        now = monotonic()
        is_much = self._rules.sync == "ack" and self._unsynced >= self._rules.sync_bytes
        if self._sync_at is not None and (now >= self._sync_at or is_much):
            segment.sync()
            self._synced_at = monotonic()
            self._sync_at = None
            self._unsynced = 0
            if self._rules.sync == "ack":
                self._report(Safe(self._position))
        is_full = segment.size >= self._rules.segment_bytes or now >= self._end_at
        if is_full or segment.day != day_of(time_ns()):
            self._finish()

    def _finish(self) -> None:
        segment = self._segment
        if segment is not None:
            segment.finish()
            self._segment = None
            self._sync_at = None
            self._unsynced = 0
            self._report(Safe(self._position))
            self._report(SegmentCompleted())

    def _patience_s(self) -> float | None:
        if self._segment is None:
            return None
        due = self._end_at if self._sync_at is None else min(self._sync_at, self._end_at)
        return max(due - monotonic(), 0.0)
