"""Time index of a journal: finds the position of the first message at or after a time.

Times need not grow with positions: a clock may be set back, and messages from other gateways have
the time at which those received them. So only segments whose messages are all earlier are skipped.
"""

import struct
import threading
from collections import OrderedDict
from pathlib import Path

from weft.journal.parquet.sealed_files import Damaged
from weft.journal.read.messages import mapped
from weft.journal.segment.blocks import Block, BlockKind, Bytes, blocks_in, latest_in, salt_of
from weft.journal.segment.file_names import Segment, segments_of

# Retries after a segment was renamed.
TRIES_MAX = 100
# Segments whose latest time is cached.
SEGMENTS_MAX = 16_384

_FRAME = struct.Struct("<I20xq")


class Latest:
    """Cache of the latest times of segments that no longer change; thread-safe."""

    def __init__(self) -> None:
        self._known: OrderedDict[Path, int] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, segment: Segment) -> int:
        """Return the time of the latest message of a full or sealed segment.

        Raises:
            Damaged: a sealed segment is damaged.
            OSError: unreadable file.
        """
        with self._lock:
            if (known := self._known.get(segment.path)) is not None:
                self._known.move_to_end(segment.path)
                return known
        found = _latest_sealed(segment) if segment.state == "sealed" else _latest_full(segment)
        with self._lock:
            self._known[segment.path] = found
            if len(self._known) > SEGMENTS_MAX:
                self._known.popitem(last=False)
        return found


LATEST = Latest()


def position_at(root: Path, service: str, node: str, time_ns: int) -> int | None:
    """Return the position of the first message at or after a time; None if there is none.

    Damaged segments, and damaged parts of segments, are skipped.

    Raises:
        OSError: the journal cannot be read.
    """
    for _ in range(TRIES_MAX):
        try:
            return _position_in_any(segments_of(root, service, node), time_ns)
        except FileNotFoundError:
            # Completed, sealed or removed since it was listed.
            continue
    return _position_in_any(segments_of(root, service, node), time_ns)


def _position_in_any(segments: list[Segment], time_ns: int) -> int | None:
    for segment in segments:
        try:
            if segment.state != "open" and LATEST.of(segment) < time_ns:
                continue
            position = _position_after(segment, time_ns)
        except Damaged:
            continue
        if position is not None:
            return position
    return None


def _latest_sealed(segment: Segment) -> int:
    # A large import that only readers of old messages need.
    from weft.journal.parquet.schema import latest_ns  # noqa: PLC0415

    return latest_ns(segment.path)


def _latest_full(segment: Segment) -> int:
    with mapped(segment.path) as data:
        found = latest_in(data)
        if found is None:
            # Completed by recovery, which does not record the latest time.
            _, found = _look(data, segment, None)
        return found


def _position_after(segment: Segment, time_ns: int) -> int | None:
    if segment.state == "sealed":
        from weft.journal.parquet.schema import position_after  # noqa: PLC0415  # as above

        return position_after(segment.path, time_ns)
    with mapped(segment.path) as data:
        position, _ = _look(data, segment, time_ns)
        return position


def _look(data: Bytes, segment: Segment, time_ns: int | None) -> tuple[int | None, int]:
    """Return the first message at or after a time, and the latest time before it."""
    latest = 0
    for block in blocks_in(data, salt=salt_of(data, is_full=segment.state == "full")):
        if not isinstance(block, Block) or block.kind != BlockKind.FRAMES:
            continue
        body = bytes(data[block.body : block.end])
        at = 0
        for position in range(block.first, block.first + block.frames):
            if len(body) - at < _FRAME.size:
                break
            size, time = _FRAME.unpack_from(body, at)
            if not _FRAME.size <= size <= len(body) - at:
                break
            if time_ns is not None and time >= time_ns:
                return position, time
            latest = max(latest, time)
            at += size
    return None, latest
