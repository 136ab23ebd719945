"""Recovery after a crash: finds the end of a journal, and sets torn bytes aside.

Nothing is deleted. Bytes after the last whole block of an open segment are moved to a file of their
own; earlier damage stays in place and is reported, and the journal continues.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep, time_ns
from typing import NamedTuple

from weft.broker.journal.batcher import BLOCK_HEADER_BYTES
from weft.errors import BadOption
from weft.journal import file_modes
from weft.journal.file_modes import journal_opener
from weft.journal.journal_id import keep_identity
from weft.journal.segment.blocks import (
    UNKNOWN_SALT,
    Block,
    BlockKind,
    Damage,
    block_at,
    blocks_in,
    end_block,
    frames_max_in,
    salt_of,
    torn_block,
)
from weft.journal.segment.file_names import JournalFolder, Segment, segments_of
from weft.journal.segment.writer import about, sync_folder

_LOCK_RETRY_S = 0.02


class RecoveryResult(NamedTuple):
    """Result of a recovery: the next position, and lines for the log."""

    position: int
    news: list[str]


@contextmanager
def owned(place: JournalFolder, wait_s: float = 0.0) -> Iterator[None]:
    """Hold the lock of a journal, so that no other gateway writes it.

    Waits up to `wait_s`: the process that holds it may be about to exit.

    Raises:
        BadOption: another gateway writes the journal.
        OSError: the folder cannot be created.
    """
    place.folder.mkdir(parents=True, exist_ok=True)
    fd = os.open(place.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, file_modes.JOURNAL)
    try:
        if not _locked(fd, wait_s):
            raise BadOption(
                f"the journal {place.folder} of node {place.node} is being written by another"
                " gateway: give one of them another name, or other data"
            )
        yield
    finally:
        os.close(fd)


def _locked(fd: int, wait_s: float) -> bool:
    """Lock a file; False if it is still locked by another process after `wait_s`."""
    deadline = monotonic() + wait_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if monotonic() >= deadline:
                return False
            # flock() has no timeout, and nothing reports when a lock is released.
            sleep(_LOCK_RETRY_S)
        else:
            return True


def recover(place: JournalFolder) -> RecoveryResult:
    """Complete all open segments and find the next position; a new journal gets its id.

    Raises:
        OSError: a file cannot be read or written.
    """
    root = place.folder.parent
    news: list[str] = []
    for segment in segments_of(root, place.service, place.node):
        if segment.state == "open":
            news += _end(place, segment)
    last = [each.last for each in segments_of(root, place.service, place.node)]
    return RecoveryResult(keep_identity(place, max(last, default=-1) + 1), news)


def _end(place: JournalFolder, segment: Segment) -> list[str]:
    data = segment.path.read_bytes()
    salt = salt_of(data)
    if salt == UNKNOWN_SALT:
        return _end_unreadable(place, segment, data)
    news: list[str] = []
    end = 0
    position = segment.first
    is_ended = False
    for found in blocks_in(data, salt=salt):
        if isinstance(found, Block):
            if found.first > position:
                news.append(hole(segment.path, position, found.first - 1))
            position = max(position, found.first + found.frames)
            end = found.end
            is_ended = found.kind == BlockKind.END
        elif not found.is_tail:
            news.append(f"{segment.path}: bytes {found.start} … {found.end}: {found.why}")
        else:
            news.append(_cut(place, segment, data, found))
    after = _after_torn(place, segment.first, salt)
    with segment.path.open("r+b") as file:
        file.truncate(end)
        file.seek(end)
        if after > position and not is_ended:
            # Readers may have seen these messages: their positions must not be reused.
            news.append(hole(segment.path, position, after - 1))
            file.write(torn_block(position, after - position, salt))
            position = after
        if not is_ended:
            file.write(end_block(position, salt))
        file.flush()
        os.fdatasync(file.fileno())
    if position > segment.first:
        segment.path.rename(place.full(segment.first, position - 1))
    else:
        segment.path.unlink()
    sync_folder(place.folder)
    return news


def _end_unreadable(place: JournalFolder, segment: Segment, data: bytes) -> list[str]:
    """Set aside a segment with a damaged beginning: none of its blocks can be trusted.

    The positions that it may have had are not reused.
    """
    news: list[str] = []
    if data:
        why = "its beginning is damaged, or of an older version"
        news.append(_cut(place, segment, data, Damage(0, len(data), why, is_tail=True)))
    beginning = len(about(place, segment.first, 0, 0))
    keep_identity(place, segment.first + frames_max_in(len(data) - beginning))
    segment.path.unlink()
    sync_folder(place.folder)
    return news


def _cut(place: JournalFolder, segment: Segment, data: bytes, tail: Damage) -> str:
    """Save torn bytes to a file of their own, before they are cut off."""
    path = place.torn(segment.first, time_ns())
    with open(path, "xb", opener=journal_opener) as file:  # Path has no opener
        file.write(data[tail.start :])
        file.flush()
        os.fsync(file.fileno())
    sync_folder(place.folder)
    return (
        f"{segment.path}: {tail.end - tail.start} bytes after {tail.start} were cut off and are in"
        f" {path.name}: {tail.why}"
    )


def _after_torn(place: JournalFolder, first: int, salt: int) -> int:
    """Return the position after all bytes cut off a segment, also by an interrupted recovery."""
    after = first
    for path in place.torn_off(first):
        with path.open("rb") as file:
            block = block_at(file.read(BLOCK_HEADER_BYTES), 0, salt)
        if block is not None:
            after = max(after, block.first + block.frames)
    return after


def hole(path: Path, first: int, last: int) -> str:
    """Return the log line for missing positions."""
    return f"{path}: {last - first + 1} messages are missing, positions {first} … {last}"
