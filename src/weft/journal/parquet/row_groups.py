"""Row groups and batches of messages, bounded in bytes as well as in rows.

A message may be megabytes and compress to almost nothing: neither the number of rows nor the size
of a file bounds the memory of its messages. A message over the limit is a batch by itself.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from weft.journal.segment.blocks import Block, Bytes, message_end

# A reader decompresses a row group at once, and processes a batch at once. At this size the cost
# per group or batch is small compared with that of its bytes, and a reader with some copies of a
# batch in several forms stays within a few hundred megabytes.
GROUP_ROWS = 131_072
GROUP_BYTES = 32 << 20
# Column chunks are read in pieces: one of bodies is as large as its row group.
_BUFFER_BYTES = 1 << 20


class BlockPart(NamedTuple):
    """Consecutive whole frames, the position of the first, and their number."""

    frames: bytes
    first: int
    rows: int


def open_file(source: Any, *, is_ahead: bool = False) -> pq.ParquetFile:
    """Open Parquet and verify the checksums of its pages.

    Args:
        source: a path or a file.
        is_ahead: whether to use few large reads, for a remote source.
    """
    return pq.ParquetFile(
        source,
        pre_buffer=is_ahead,
        buffer_size=0 if is_ahead else _BUFFER_BYTES,
        page_checksum_verification=True,
    )


def batches_of(
    file: pq.ParquetFile,
    groups: Iterable[int],
    columns: list[str] | None,
    *,
    rows: int = GROUP_ROWS,
    size_bytes: int = GROUP_BYTES,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some row groups, in batches that are bounded in rows and in bytes.

    Args:
        file: a sealed segment.
        groups: the numbers of the row groups, in order.
        columns: the columns to read, and to count the bytes of; None for all.
        rows: the most rows of a batch.
        size_bytes: about the most bytes of a batch, as its columns are in memory.
    """
    for run, size in _runs(file, groups, columns, size_bytes):
        most = rows
        if size > size_bytes:
            # A single large group: equal parts, so that there is no short remainder.
            parts = -(-size // size_bytes)
            most = min(rows, max(-(-file.metadata.row_group(run[0]).num_rows // parts), 1))
        yield from file.iter_batches(most, run, columns)


def grouped(batches: Iterable[pa.RecordBatch], rows: int, size_bytes: int) -> Iterator[pa.Table]:
    """Group batches into row groups of at least `rows` rows or about `size_bytes` bytes.

    A batch over the limit is a group by itself.
    """
    group: list[pa.RecordBatch] = []
    count = size = 0
    for batch in batches:
        if group and (count >= rows or size + batch.nbytes > size_bytes):
            yield pa.Table.from_batches(group)
            group, count, size = [], 0, 0
        group.append(batch)
        count += batch.num_rows
        size += batch.nbytes
    if group:
        yield pa.Table.from_batches(group)


def block_parts(data: Bytes, block: Block, size_bytes: int = GROUP_BYTES) -> Iterator[BlockPart]:
    """Yield the frames of a block in parts of about `size_bytes`, at least one frame each.

    Raises:
        ValueError: the block holds fewer whole frames than its header states.
    """
    if block.end - block.body <= size_bytes:
        yield BlockPart(bytes(data[block.body : block.end]), block.first, block.frames)
        return
    start = at = block.body
    first = block.first
    for position in range(block.first, block.first + block.frames):
        end = message_end(data, at, block.end)
        if end < 0:
            raise ValueError(f"position {position} has no whole message")
        if position > first and end - start > size_bytes:
            yield BlockPart(bytes(data[start:at]), first, position - first)
            start, first = at, position
        at = end
    # The reader rejects bytes after the last frame.
    yield BlockPart(bytes(data[start : block.end]), first, block.first + block.frames - first)


def _runs(
    file: pq.ParquetFile, groups: Iterable[int], columns: list[str] | None, size_bytes: int
) -> Iterator[tuple[list[int], int]]:
    """Yield groups to read together, and their size; a group over the limit is alone."""
    run: list[int] = []
    size = 0
    for group in groups:
        more = _size_of(file.metadata.row_group(group), columns)
        if run and size + more > size_bytes:
            yield run, size
            run, size = [], 0
        run.append(group)
        size += more
    if run:
        yield run, size


def _size_of(group: pq.RowGroupMetaData, columns: list[str] | None) -> int:
    """Return the size of some columns of a row group; repeated texts count once."""
    found = (group.column(each) for each in range(group.num_columns))
    return sum(
        int(each.total_uncompressed_size)
        for each in found
        if columns is None or each.path_in_schema in columns
    )
