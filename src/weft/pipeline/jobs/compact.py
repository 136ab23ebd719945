"""Compaction: merges small sealed segments of a journal into large ones."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from weft.errors import BadOption
from weft.journal.parquet.compact import Merged, merge_day
from weft.journal.segment.file_names import JournalFolder
from weft.pipeline.job import Job

FOLDERS = "root string, service string, date string, node string"
_RESULT = (
    "service string, date string, node string, file string, merged bigint, messages bigint,"
    " bytes bigint, why string"
)
_ARROW = pa.schema(
    [
        *((name, pa.string()) for name in ("service", "date", "node", "file")),
        *((name, pa.int64()) for name in ("merged", "messages", "bytes")),
        ("why", pa.string()),
    ]
)


def compact(folders: DataFrame, *, target_bytes: int = 256 << 20) -> DataFrame:
    """Merge many small Parquet files into few large ones with the same messages.

    Columns: service, date, node, file, merged (number of source files), messages, bytes, why: a
    file that stays as it is has no numbers, but a reason. Works while the gateway runs. The files
    are merged when the result is evaluated; a second evaluation finds them merged already.

    Raises:
        BadOption: The target is not more than 0.
    """
    if target_bytes <= 0:
        raise BadOption(f"target_bytes is {target_bytes}; it must be more than 0")
    # One task per folder: two tasks must not merge the same files.
    apart = folders.repartition("service", "date", "node")
    return apart.mapInArrow(_compacting(target_bytes), _RESULT)


def _compacting(
    target_bytes: int,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for folder in batch.to_pylist():
                rows = list(_rows(folder, target_bytes))
                yield pa.RecordBatch.from_pylist(rows, schema=_ARROW)

    return work


def _rows(folder: dict[str, str], target_bytes: int) -> Iterator[dict[str, object]]:
    place = JournalFolder(Path(folder["root"]), folder["service"], folder["node"])
    of = {name: folder[name] for name in ("service", "date", "node")}
    for made in merge_day(place, folder["date"], target_bytes):
        row: dict[str, object] = {**of, "file": made.path.name}
        if isinstance(made, Merged):
            row |= {"merged": made.segments, "messages": made.messages, "bytes": made.size}
        else:
            row["why"] = made.why
        yield row


JOB = Job(compact, FOLDERS, reads_folders=True)
