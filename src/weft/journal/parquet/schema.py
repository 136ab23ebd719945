"""Parquet schema of messages: one row each, sufficient to restore the frame.

Node, service and day are in the path and not in the file: readers of partitioned data take them
from there.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weft.journal.file_modes import journal_opener
from weft.journal.parquet.columns import Columns, IntegerColumn, Texts
from weft.journal.parquet.row_groups import batches_of, open_file
from weft.journal.parquet.sealed_files import Damaged, reading
from weft.journal.read.record import JournalRecord
from weft.wire.frames import Kind, Stamp, encode, stamp_frame

SCHEMA = pa.schema(
    [
        pa.field("subject", pa.string(), nullable=False),
        pa.field("reply", pa.string(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("origin", pa.int64(), nullable=False),
        pa.field("publisher", pa.int64(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
        pa.field("flags", pa.int64(), nullable=False),
        pa.field("time_ns", pa.int64(), nullable=False),
    ]
)
_NUMBERS = ("origin", "publisher", "sequence", "position", "flags", "time_ns")
# Batch limits for reading message by message: a gateway has many such readers at once.
_ROWS = 16_384
_BYTES = 4 << 20


def batch_of(columns: Columns) -> pa.RecordBatch:
    """Return the messages of columns as a batch."""
    arrays = {name: _numbers(getattr(columns, name), columns.rows) for name in _NUMBERS}
    arrays |= {
        "subject": _texts(columns.subject, columns.rows, pa.string()),
        "reply": _texts(columns.reply, columns.rows, pa.string()),
        "payload": _texts(columns.payload, columns.rows, pa.binary()),
        "timestamp": pc.divide(arrays["time_ns"], 1000).cast(SCHEMA.field("timestamp").type),
    }
    return pa.RecordBatch.from_arrays([arrays[name] for name in SCHEMA.names], schema=SCHEMA)


def writer_of(path: Path) -> pq.ParquetWriter:
    """Return a writer for a new file, with fast compression."""
    return pq.ParquetWriter(
        path,
        SCHEMA,
        compression="zstd",
        compression_level=1,
        use_dictionary=["subject", "reply"],
        column_encoding=dict.fromkeys(
            ["timestamp", "sequence", "position", "time_ns", "origin", "publisher", "flags"],
            "DELTA_BINARY_PACKED",
        ),
        write_page_checksum=True,
    )


def journal_writer(path: Path) -> pq.ParquetWriter:
    """Return a writer_of() a new file that only the owner and the group may read."""
    os.close(journal_opener(str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC))
    return writer_of(path)


@contextmanager
def opened(source: Any, *, is_ahead: bool = False) -> Iterator[pq.ParquetFile]:
    """Open a sealed segment for reading, and verify the checksum of every page.

    `is_ahead` uses few large reads, for a remote source.

    Raises:
        Damaged: not Parquet, or a wrong checksum.
        OSError: it cannot be read for another reason.
    """
    try:
        with reading(source), open_file(source, is_ahead=is_ahead) as file:
            yield file
    except pa.ArrowMemoryError:
        raise
    except pa.ArrowException as error:
        raise Damaged(f"{source}: {error}") from error


def messages_in(path: Path, first: int, last: int) -> Iterator[JournalRecord]:
    """Yield the messages of a file between two positions, inclusive.

    Raises:
        Damaged: the file is damaged.
        OSError: unreadable file.
    """
    with opened(path) as file:
        groups = groups_in(file, first, last)
        for batch in batches_of(file, groups, None, rows=_ROWS, size_bytes=_BYTES):
            for row in batch.to_pylist():
                if first <= row["position"] <= last:
                    yield JournalRecord(row["position"], _frame(row))


def groups_in(file: pq.ParquetFile, first: int, last: int) -> list[int]:
    """Return the row groups of a file that have messages between two positions."""
    groups = range(file.num_row_groups)
    return [each for each in groups if _overlaps(file.metadata.row_group(each), first, last)]


def position_after(path: Path, time_ns: int) -> int | None:
    """Return the position of the first message at or after a time; None if there is none.

    Raises:
        Damaged: the file is damaged.
        OSError: unreadable file.
    """
    with opened(path) as file:
        late = [each for each, latest in enumerate(_latest_of_groups(file)) if latest >= time_ns]
        for group in late:
            table = file.read_row_group(group, ["position", "time_ns"])
            found: int | None = pc.min(
                table.filter(pc.greater_equal(table["time_ns"], time_ns))["position"]
            ).as_py()
            if found is not None:
                return found
    return None


def latest_ns(path: Path) -> int:
    """Return the time of the latest message of a file.

    Raises:
        Damaged: the file is damaged.
        OSError: unreadable file.
    """
    with opened(path) as file:
        return max(_latest_of_groups(file), default=0)


def _latest_of_groups(file: pq.ParquetFile) -> list[int]:
    column = SCHEMA.get_field_index("time_ns")
    groups = (file.metadata.row_group(each) for each in range(file.num_row_groups))
    return [int(group.column(column).statistics.max) for group in groups]


def _overlaps(group: Any, first: int, last: int) -> bool:
    column = SCHEMA.get_field_index("position")
    statistics = group.column(column).statistics
    return bool(statistics.min <= last and statistics.max >= first)


def _frame(row: dict[str, Any]) -> bytes:
    subject, reply = row["subject"].encode(), row["reply"].encode()
    frame = bytearray(encode(Kind.MESSAGE, subject, row["payload"], reply, row["flags"]))
    stamp = Stamp(row["origin"], row["publisher"], row["sequence"], row["time_ns"])
    stamp_frame(frame, 0, stamp)
    return bytes(frame)


def _texts(column: Texts, rows: int, kind: pa.DataType) -> pa.Array:
    buffers = [None, pa.py_buffer(column.offsets.take()), pa.py_buffer(column.data.take())]
    return pa.Array.from_buffers(kind, rows, buffers)


def _numbers(column: IntegerColumn, rows: int) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(column.data.take())])
