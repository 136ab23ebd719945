"""Journal in pages, for replays that read at their own pace.

A page holds whole frames, or a part of a message that is larger than a page.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from weft.broker.journal.batcher import ARRIVED
from weft.journal.read.messages import history
from weft.journal.read.record import Hole, JournalRecord
from weft.journal.read.time_index import position_at
from weft.wire.frames import HEADER_BYTES
from weft.wire.subjects import matches

# Maximum bytes scanned for a page, however few of them match.
SCAN_MAX_BYTES = 16 << 20
# Cost of matching a pattern, in scanned bytes.
_MATCH_BYTES = 16
# Subjects whose match is cached.
_SUBJECTS_MAX = 4096
# Readers whose iterator is kept, so that their next page needs no search.
_READERS_MAX = 64
_FLAGS = 5


class PageRequest(NamedTuple):
    """Request for a page: patterns, range of positions and maximum size.

    `offset` is how much of the message at `first` the reader already has.
    """

    patterns: tuple[bytes, ...]
    first: int
    until: int
    max_bytes: int
    offset: int = 0


class JournalPage(NamedTuple):
    """Frames, the position to request next, and the number of missing messages before it.

    `left` bytes of a large message remain; then the next position is still its own.
    """

    frames: bytes
    next: int
    left: int
    missing: int


class JournalPages:
    """Pages of one node's journal of a service."""

    def __init__(self, root: Path, service: str, node: str) -> None:
        self._root = root
        self._service = service
        self._node = node
        self._open: dict[tuple[tuple[bytes, ...], int], Iterator[JournalRecord | Hole]] = {}

    def page(self, question: PageRequest) -> JournalPage:
        """Return a page.

        Raises:
            OSError: the journal cannot be read.
        """
        found = self._open.pop((question.patterns, question.first), iter(()))
        page, is_over = _page(found, question)
        if is_over and page == JournalPage(b"", question.first, 0, 0):
            # No such reader, or it had reached the end of the journal at that time.
            found = self._history(question.first)
            page, is_over = _page(found, question)
        if not is_over:
            self._open[question.patterns, page.next] = found
            if len(self._open) > _READERS_MAX:
                del self._open[next(iter(self._open))]
        return page

    def position_at(self, time_ns: int) -> int | None:
        """Return the position of the first message at or after a time; None if there is none.

        Raises:
            OSError: the journal cannot be read.
        """
        return position_at(self._root, self._service, self._node, time_ns)

    def _history(self, first: int) -> Iterator[JournalRecord | Hole]:
        return history(self._root, self._service, self._node, first)


def _page(found: Iterator[JournalRecord | Hole], question: PageRequest) -> tuple[JournalPage, bool]:
    """Return a page from an iterator, and whether a new iterator is needed for the next one."""
    frames: list[bytes] = []
    position = question.first
    wanted: dict[bytes, bool] = {}
    size = scanned = missing = 0
    for each in found:
        if isinstance(each, Hole):
            missing += each.last - each.first + 1
            position = each.last + 1
            continue
        scanned += len(each.frame)
        subject = each.frame[HEADER_BYTES : HEADER_BYTES + each.frame[6]]
        if subject not in wanted:
            scanned += len(question.patterns) * _MATCH_BYTES
            _learn(wanted, subject, question.patterns)
        if wanted[subject]:
            frame = _as_sent(each.frame)
            if len(frame) > question.max_bytes:
                # A large message has pages of its own.
                if frames:
                    return JournalPage(b"".join(frames), each.position, 0, missing), True
                return _part(JournalRecord(each.position, frame), question, missing), True
            frames.append(frame)
            size += len(frame)
        position = each.position + 1
        if position >= question.until or size >= question.max_bytes or scanned >= SCAN_MAX_BYTES:
            return JournalPage(b"".join(frames), position, 0, missing), False
    return JournalPage(b"".join(frames), position, 0, missing), True


def _part(kept: JournalRecord, question: PageRequest, missing: int) -> JournalPage:
    offset = question.offset if kept.position == question.first else 0
    part = kept.frame[offset : offset + question.max_bytes]
    left = len(kept.frame) - offset - len(part)
    return JournalPage(part, kept.position if left else kept.position + 1, left, missing)


def _as_sent(frame: bytes) -> bytes:
    """Return a frame as on the wire: without the journal's own flag."""
    flags = frame[_FLAGS]
    if not flags & ARRIVED:
        return frame
    return b"".join((frame[:_FLAGS], bytes((flags & ~ARRIVED,)), frame[_FLAGS + 1 :]))


def _learn(wanted: dict[bytes, bool], subject: bytes, patterns: tuple[bytes, ...]) -> None:
    """Cache whether a subject matches."""
    if len(wanted) >= _SUBJECTS_MAX:
        wanted.clear()
    wanted[subject] = any(matches(pattern, subject) for pattern in patterns)
