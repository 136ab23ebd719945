"""Two-phase writes: rows are staged first, and published when their writer commits the batch.

A thread does the file I/O. Batches are committed one after another, one piece per turn, so that
live traffic goes on. A commit is confirmed when the journal has the batch durable. Once begun it
runs to its end, even if the writer disconnects or the gateway is killed.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from weft.broker.auth.key_connections import holder_of
from weft.broker.auth.key_quota import KeyQuota
from weft.broker.auth.permissions import PUBLISH, Rights
from weft.broker.journal.batcher import Journal
from weft.broker.journal.release_staged import Release, checked_rows
from weft.broker.service import Peer, Service, is_insider
from weft.errors import (
    BadFrame,
    BadOption,
    InternalError,
    JournalFailed,
    NotAllowed,
    Overloaded,
    WeftError,
    WrongType,
)
from weft.gateway.requests.deferred import DeferredRequest
from weft.gateway.worker.thread_jobs import Errands
from weft.journal.staging.batches import BatchCommit, Batches, PublishedMark, Removed, released_rows
from weft.journal.staging.parts import FOLDER, RowChunk, StagedPart, StagedParts
from weft.transports.loop.poller import Poll
from weft.transports.loop.turn import Turn
from weft.wire.message.message import Message

_log = logging.getLogger(__name__)

# Waiting requests per service; each key, or without keys each connection, has a share of them.
WAITING_MAX = 256
# Interval between searches for abandoned rows.
TIDY_S = 600.0


class Due:
    """Batch to commit, and its pending requests: none if it was resumed after a restart."""

    def __init__(self, order: BatchCommit, asked: list[DeferredRequest]) -> None:
        self.order = order
        self.asked = asked


class Folders(NamedTuple):
    """Data folder of staged rows, their limit in bytes, and the folder of the journal."""

    data: Path
    journal: Path
    limit_bytes: int


def prepare(folders: Folders, service: Service) -> None:
    """Create the folder for the rows of a service.

    Raises:
        OSError: The folder cannot be created.
    """
    _place_of(folders, service).mkdir(parents=True, exist_ok=True, mode=0o700)


def _place_of(folders: Folders, service: Service) -> Path:
    return folders.data / FOLDER / f"service={service.name}" / f"node={service.gateway}"


class Staging:
    """Staged rows of one service.

    Raises:
        OSError: The folder cannot be created or read.
    """

    def __init__(self, turn: Turn, poll: Poll, journal: Journal, folders: Folders) -> None:
        service = turn.service
        place = _place_of(folders, service)
        self._turn = turn
        self._service = service
        self._journal = journal
        self._root = folders.journal
        self._parts = StagedParts(place, folders.limit_bytes)
        self._batches = Batches(place, self._parts)
        self._due = deque(Due(each, []) for each in self._batches.unfinished())
        self._errands = Errands(poll, "weft-staging")
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(TIDY_S, self._tidy)
        self._waiting = 0
        self._shares = KeyQuota("errands that wait")
        # Current commit: its publisher, its remaining rows, and rows that await journal space.
        self._release: Release | None = None
        self._rows: Iterator[bytes] = iter(())
        self._kept_back: bytes | None = None
        self._is_all_out = False
        self._is_asking = False
        # Writers whose batch was interrupted, and why.
        self._broken: dict[str, str] = {}
        service.desks["stage"] = self.stage
        service.desks["release"] = self.release
        service.desks["discard"] = self.discard
        if self._due:
            _log.warning("staging: resuming %s interrupted batches", len(self._due))
            self._begin()

    def stage(self, peer: Peer, reply: bytes, request: Message) -> WeftError | None:
        """Stage rows; return an error of the request, or None."""
        _check_writer(peer)
        frames = request.get_blob("frames")
        part = _part(request, request.get_string("part"))
        first = request.get_int64("first")
        if first < 0:
            raise BadOption(f"first {first} cannot be less than 0")
        is_last = request.get_bool("last") if "last" in request else False
        return self._do(
            DeferredRequest(peer, reply, "stage"),
            partial(self._stage, RowChunk(part, first, frames, 0, is_last), peer.rights),
            lambda rows: Message(rows=rows),
        )

    def release(self, peer: Peer, reply: bytes, request: Message) -> WeftError | None:
        """Commit a batch; return an error of the request, or None."""
        _check_writer(peer)
        self._check_room(peer)
        parts = _items(request, "parts", str)
        rows = _items(request, "rows", int)
        batch = _part(request, "")
        order = BatchCommit(batch.writer, batch.batch, tuple(parts), tuple(rows))
        if order.writer in self._broken:
            return InternalError(self._broken[order.writer])
        asked = DeferredRequest(peer, reply, "release")
        self._count(asked, 1)
        for due in self._due:
            if (due.order.writer, due.order.batch) == (order.writer, order.batch):
                due.asked.append(asked)
                return None
        self._due.append(Due(order, [asked]))
        if len(self._due) == 1:
            self._begin()
        return None

    def discard(self, peer: Peer, reply: bytes, request: Message) -> WeftError | None:
        """Discard rows; return an error of the request, or None."""
        _check_writer(peer)
        parts = [_part(request, name) for name in _items(request, "parts", str)]
        writer = request.get_string("writer")
        is_end = request.get_bool("end") if "end" in request else False
        return self._do(
            DeferredRequest(peer, reply, "discard"),
            partial(self._discard, parts, writer if is_end else None),
            lambda _: Message(),
        )

    def journal_failed(self) -> None:
        """Reset the pending confirmation: a failed journal drops it."""
        self._is_asking = False

    def resume(self) -> None:
        """Continue: the journal has room again, or is writable again."""
        if self._kept_back is not None:
            frames, self._kept_back = self._kept_back, None
            self._publish(frames)
        elif self._is_all_out and not self._is_asking:
            self._await_safety()

    def owe(self, frames: bytes) -> None:  # noqa: ARG002  # always empty
        """Finish the commit: the journal has all its rows durable."""
        self._is_asking = False
        self._is_all_out = False
        order = self._due[0].order
        self._errands.do(partial(self._batches.finish, order), self._finished, self._failed)

    def close(self, within_s: float) -> bool:
        """Stop; unfinished batches resume at the next start. Return False on timeout."""
        for name in ("stage", "release", "discard"):
            self._service.desks.pop(name, None)
        self._timer.cancel()
        return self._errands.close(within_s)

    def _do(
        self, asked: DeferredRequest, errand: Callable[[], Any], answer: Callable[[Any], Message]
    ) -> WeftError | None:
        self._check_room(asked.peer)
        self._count(asked, 1)

        def done(result: Any) -> None:
            self._count(asked, -1)
            asked.answer(self._turn, answer(result))

        def failed(error: Exception) -> None:
            self._count(asked, -1)
            asked.refuse(self._turn, _as_told(error))

        self._errands.do(errand, done, failed)
        return None

    def _check_room(self, peer: Peer) -> None:
        """Refuse another job if there are too many.

        Raises:
            Overloaded: All writers together are at the limit.
            TooMany: The key of this peer is at its share.
        """
        if self._waiting >= WAITING_MAX:
            raise Overloaded(f"{WAITING_MAX} staging requests are waiting already")
        holder = holder_of(peer, peer.number)
        self._shares.check(holder, WAITING_MAX, self._service.limits)

    def _count(self, asked: DeferredRequest, more: int) -> None:
        self._waiting += more
        self._shares.add(holder_of(asked.peer, asked.peer.number), more)

    def _stage(self, piece: RowChunk, rights: Rights | None) -> int:
        try:
            rows = checked_rows(piece.frames, self._service.run.body_limit, rights)
        except BadFrame as error:
            raise BadOption(f"frames: {error}") from error
        self._batches.make_room(piece.part.writer)
        return self._parts.add(piece._replace(rows=rows))

    def _discard(self, parts: list[StagedPart], ended: str | None) -> None:
        self._batches.discard(parts)
        if ended is not None:
            self._batches.end(ended)

    def _tidy(self) -> None:
        """Remove abandoned rows, every TIDY_S while the service runs."""
        self._errands.do(self._batches.tidy, self._tidied, self._not_tidied)

    def _tidied(self, removed: Removed) -> None:
        if removed.parts or removed.writers:
            _log.info("staging: %s abandoned parts and %s writers were removed", *removed)
        self._timer = self._loop.call_later(TIDY_S, self._tidy)

    def _not_tidied(self, error: Exception) -> None:
        _log.error("staging: abandoned rows cannot be removed: %s", _as_told(error))
        self._timer = self._loop.call_later(TIDY_S, self._tidy)

    def _begin(self) -> None:
        """Begin to commit the first batch of the queue."""
        service = self._service
        self._release = Release(service)
        mark = PublishedMark(service.stamp.origin, self._release.publisher, self._journal.position)
        self._errands.do(
            partial(self._prepare, self._due[0].order, mark), self._prepared, self._failed
        )

    def _prepare(self, order: BatchCommit, mark: PublishedMark) -> tuple[BatchCommit, int] | None:
        begun = self._batches.begin(order, mark)
        if begun is None:
            return None
        service = self._service
        before = begun.marks[:-1]
        return begun, released_rows(self._root, service.name, service.gateway, before)

    def _prepared(self, begun: tuple[BatchCommit, int] | None) -> None:
        due = self._due[0]
        if begun is None:
            self._end(lambda asked: asked.answer(self._turn, _answer(due.order, is_again=True)))
            return
        due.order, known = begun
        if self._release is not None:
            self._release.known = known
        self._rows = self._batches.rows(due.order)
        self._read_on()

    def _read_on(self) -> None:
        self._errands.do(lambda: next(self._rows, None), self._publish, self._failed)

    def _publish(self, frames: bytes | None) -> None:
        """Publish some rows, or keep them until the journal has room."""
        if frames is None:
            self._is_all_out = True
            self._await_safety()
            return
        journal = self._journal
        if journal.is_failing or journal.is_full():
            self._kept_back = frames
            if not journal.is_failing:
                journal.hold(self)
            return
        arena = self._service.arena
        if arena.room() < len(frames):
            self._turn.flush()
        start = arena.put(frames)
        if self._release is not None:
            self._release.publish(start, start + len(frames))
        self._turn.wake()
        self._read_on()

    def _await_safety(self) -> None:
        if self._journal.is_failing:
            return
        if self._journal.safe >= self._journal.position:
            self.owe(b"")
        else:
            self._is_asking = True
            self._journal.ask(self)
            self._turn.wake()

    def _finished(self, _: None) -> None:
        order = self._due[0].order
        self._end(lambda asked: asked.answer(self._turn, _answer(order, is_again=False)))

    def _failed(self, error: Exception) -> None:
        told = _as_told(error)
        due = self._due[0]
        if self._release is not None and self._release.is_begun:
            # How much of it the journal has is only known for sure after a restart.
            self._broken[due.order.writer] = f"batch {due.order.batch} was cut short: {told}"
        _log.error("staging: batch %s of %s: %s", due.order.batch, due.order.writer, told)
        self._end(lambda asked: asked.refuse(self._turn, told))

    def _end(self, tell: Callable[[DeferredRequest], None]) -> None:
        self._release = None
        self._rows = iter(())
        for asked in self._due.popleft().asked:
            self._count(asked, -1)
            tell(asked)
        if self._due:
            self._begin()


def _check_writer(peer: Peer) -> None:
    """Refuse peers that are not services or admins, or may not publish at all.

    The permission for each subject is checked when rows are staged; batch names have no owner.
    """
    may_publish = peer.rights is None or peer.rights.has(PUBLISH)
    if not (is_insider(peer) and may_publish):
        raise NotAllowed("this connection may not write in two steps: services that publish may")


def _answer(order: BatchCommit, *, is_again: bool) -> Message:
    return Message(batch=order.batch, rows=sum(order.rows), again=is_again)


def _part(request: Message, name: str) -> StagedPart:
    return StagedPart(request.get_string("writer"), request.get_int64("batch"), name)


def _items(request: Message, name: str, kind: type) -> list[Any]:
    items = request.get_list(name)
    for item in items:
        if type(item) is not kind:
            raise WrongType(f"{name} are {kind.__name__}, not {type(item).__name__}")
    return items


def _as_told(error: Exception) -> WeftError:
    if isinstance(error, WeftError):
        return error
    if isinstance(error, OSError):
        return JournalFailed(f"staged rows cannot be kept: {error.strerror or error}")
    _log.error("staging failed", exc_info=error)
    return InternalError("staging failed; the log says how")
