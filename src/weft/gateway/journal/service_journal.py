"""Journal of a running service: filled by its turns, written by its writer thread."""

import logging
import os
import queue
from contextlib import ExitStack
from pathlib import Path
from time import monotonic

from weft.broker.journal.acks import journal_failed
from weft.broker.journal.batcher import Journal, JournalBatch
from weft.broker.service import Peer
from weft.errors import WeftError
from weft.gateway.config.settings import JournalSettings
from weft.gateway.http.service_status import JournalStatus
from weft.gateway.journal.history_requests import Archive
from weft.gateway.journal.maintenance import Tidying
from weft.gateway.journal.staging import Folders, Staging, prepare
from weft.journal.segment.file_names import FOLDER, JournalFolder
from weft.journal.segment.recovery import owned, recover
from weft.journal.writer_thread import (
    Recovered,
    Report,
    Safe,
    Scribe,
    SegmentCompleted,
    WriteFailed,
    WriterSettings,
    Written,
)
from weft.transports.loop.poller import READING, Poll
from weft.transports.loop.turn import Turn
from weft.wire.message.message import Message

_log = logging.getLogger(__name__)

_DESKS = ("history", "stage", "release", "discard")


def _nothing_is_written(_batch: JournalBatch) -> None:
    raise AssertionError("a journal that cannot be begun has taken something")


class NoJournal:
    """Stand-in for a journal that cannot be opened: live traffic goes on without it."""

    def __init__(self, turn: Turn, settings: JournalSettings, problem: str) -> None:
        self._turn = turn
        patterns = [pattern.encode() for pattern in settings.patterns]
        # Messages are not taken while the journal fails, so no batch is ever written.
        self._journal = Journal(patterns, 0, turn.service.arena, _nothing_is_written)
        self._journal.is_of_mesh = settings.scope == "mesh"
        self._journal.failed(problem)
        turn.service.router.journal = self._journal
        for name in _DESKS:
            turn.service.desks[name] = self.refuse

    def refuse(self, peer: Peer, reply: bytes, request: Message) -> WeftError | None:  # noqa: ARG002  # a desk
        """Refuse to read or write the journal."""
        return self._journal.failure()

    def end(self) -> None:
        """Log the number of missed messages; the opened journal registers its own handlers."""
        if self._journal.missed:
            _log.warning("journal: %s messages were missed before it opened", self._journal.missed)

    def status(self) -> JournalStatus:
        """Return the status of the journal."""
        journal = self._journal
        return JournalStatus(position=0, safe=0, missed=journal.missed, problem=journal.problem)


class Journaling:
    """Journal of one service.

    Waits for up to `wait_s` for the previous process that wrote it.

    Raises:
        BadOption: Another gateway writes it.
        OSError: It is unreadable, or its folder cannot be created.
    """

    def __init__(
        self, turn: Turn, poll: Poll, data: Path, settings: JournalSettings, wait_s: float
    ) -> None:
        service = turn.service
        place = JournalFolder(data / FOLDER, service.name, service.gateway)
        self._service = service
        self._turn = turn
        self._poll = poll
        self._safe = 0
        with ExitStack() as stack:
            stack.enter_context(owned(place, wait_s))
            found = recover(place)
            # All steps that may fail on the disk come before the first thread and task.
            folders = Folders(data, data / FOLDER, settings.staged_bytes)
            prepare(folders, service)
            self._stack = stack.pop_all()
        for news in found.news:
            _log.error("journal: %s", news)
        _log.info("journal: %s, next position %s", place.folder, found.position)
        self._safe = found.position
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        # Signalled by the writer thread, handled in a turn: independent of how busy the loop is.
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        rules = WriterSettings(
            sync=settings.sync,
            sync_s=settings.sync_s,
            sync_bytes=settings.sync_bytes,
            interval_s=settings.interval_s,
            segment_bytes=settings.segment_bytes,
            segment_s=settings.segment_s,
        )
        self._scribe = Scribe(place, rules, found.position, self._reported)
        patterns = [pattern.encode() for pattern in settings.patterns]
        self._journal = Journal(patterns, found.position, service.arena, self._scribe.write)
        # Before joining a mesh, so that the first interest sent to other gateways is right.
        self._journal.is_of_mesh = settings.scope == "mesh"
        service.router.journal = self._journal
        self._archive = Archive(turn, self._journal, data / FOLDER)
        self._tidying = Tidying(data / FOLDER, service.name, service.gateway, settings)
        self._staging = Staging(turn, poll, self._journal, folders)
        poll.watch(self._bell, self, READING)
        self._scribe.start()

    def status(self) -> JournalStatus:
        """Return the status of the journal."""
        return JournalStatus(
            position=self._journal.position,
            safe=self._safe,
            missed=self._journal.missed,
            problem=self._journal.problem,
        )

    def happened(self, events: int) -> None:  # noqa: ARG002  # only one kind of event
        """Handle the reports of the writer thread."""
        os.eventfd_read(self._bell)
        while not self._reports.empty():
            self._tell(self._reports.get_nowait())

    def give_up(self, error: WeftError) -> None:
        """Log the error: the journal has no connection to end."""
        _log.error("journal: %s", error)

    async def close(self, within_s: float) -> None:
        """Write queued messages and close, within the timeout."""
        await self._archive.close()
        await self._tidying.close()
        deadline = monotonic() + within_s
        if not self._staging.close(within_s):
            _log.error("journal: staged rows were not written after %s s", within_s)
        self._poll.watch(self._bell, self, 0)
        self._journal.keep()
        try:
            while not self._journal.is_clean():
                self._tell(self._reports.get(timeout=max(deadline - monotonic(), 0.001)))
        except queue.Empty:
            _log.error("journal: messages not written after %s s are lost", within_s)
        if not self._scribe.end(max(deadline - monotonic(), 0.001)):
            # The thread still uses the eventfd and the files, which the process's exit closes.
            _log.error("journal: the disk did not answer for %s s", within_s)
            return
        os.close(self._bell)
        self._stack.close()

    def _reported(self, report: Report) -> None:
        self._reports.put(report)
        os.eventfd_write(self._bell, 1)

    def _tell(self, report: Report) -> None:
        match report:
            case Written(batch):
                position = batch.next_position
                self._journal.written(batch)
                self._archive.written_until(position)
            case Safe(position):
                self._safe = position
                self._journal.safe_until(position)
            case WriteFailed(problem):
                self._fail(problem)
            case Recovered():
                _log.warning(
                    "journal: writing again; %s messages were missed", self._journal.missed
                )
                self._journal.recovered()
                self._staging.resume()
            case SegmentCompleted():
                self._tidying.segment_ended()

    def _fail(self, problem: str) -> None:
        if problem != self._journal.problem:
            _log.error("journal: write failed: %s", problem)
        journal_failed(self._service, problem)
        self._staging.journal_failed()
        self._archive.written_until(self._journal.position)
