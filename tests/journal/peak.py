"""Work on a journal of large messages, and print how much memory this process ever had.

Started by test_memory.py as a process of its own: python -m tests.journal.peak WORK FOLDER.
"""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.journal.desk import ORIGIN, batch_of, place_in

from weft.cli.app import run
from weft.client.publish.encode import message_frame
from weft.journal.parquet.compact import Merged, merge_day
from weft.journal.parquet.seal import Sealed, seal_all
from weft.journal.read.arrow_batches import Range, batches_in
from weft.journal.read.messages import history
from weft.journal.read.record import JournalRecord
from weft.journal.read.sources import FolderShelf
from weft.journal.segment.file_names import JournalFolder
from weft.journal.segment.writer import OpenSegment
from weft.spark.columns import Layout, Parsing
from weft.wire.frames import Stamp, stamp_frame

COUNT = 64
BODY_BYTES = 6 << 20
SEGMENT_MESSAGES = 8
DAY = "2023-11-14"
TIME_NS = 1_700_000_000_000_000_000
COLUMNS = {
    "number": pa.schema([pa.field("value", pa.int64())]),
    "blob": pa.schema([pa.field("blob", pa.binary())]),
    "body": pa.schema([pa.field("payload", pa.binary())]),
    "position": pa.schema([pa.field("position", pa.int64())]),
}


def large(number: int) -> bytes:
    """A stamped frame with a number and a blob."""
    # Bodies that compress well: a small file says nothing about the memory that it takes.
    body = {"value": number, "blob": bytes([number]) * BODY_BYTES}
    frame = bytearray(message_frame("pictures.a", body, ""))
    stamp_frame(frame, 0, Stamp(ORIGIN, publisher=3, sequence=number, time_ns=TIME_NS + number))
    return bytes(frame)


def write(place: JournalFolder) -> None:
    """Write full segments of large messages."""
    for first in range(0, COUNT, SEGMENT_MESSAGES):
        segment = OpenSegment(place, first)
        frames = [large(first + each) for each in range(SEGMENT_MESSAGES)]
        segment.append(batch_of(frames, first, 1))
        segment.finish()


def read(root: Path, schema: pa.Schema) -> int:
    """Read all rows as the Spark source does; return how many there were."""
    layout = Layout(schema, Parsing())
    wanted = Range(FolderShelf(root, "weather"), "london", 0, COUNT)
    rows = 0
    for batch in batches_in(wanted, (b">",), may_lack=False, columns=layout.needed):
        made, malformed = layout.rows(batch, wanted)
        assert not malformed
        rows += made.num_rows
    return rows


def work(what: str, root: Path) -> int:
    """Do what the argument names; return how many messages it was done for."""
    place = place_in(root)
    if what == "write":
        write(place)
        return COUNT
    if what == "seal":
        made = [*seal_all(root, "weather", "london")]
        return sum(each.messages for each in made if isinstance(each, Sealed))
    if what == "merge":
        merged = [*merge_day(place, DAY, 1 << 30)]
        return sum(each.messages for each in merged if isinstance(each, Merged))
    if what == "history":
        return sum(
            1 for each in history(root, "weather", "london") if isinstance(each, JournalRecord)
        )
    if what == "export":
        out = root.parent / "out.parquet"
        assert run(("journal", "export", str(root), str(out), "--service", "weather")) == 0
        return int(pq.read_metadata(out).num_rows)
    return read(root, COLUMNS[what])


def peak_bytes() -> int:
    """Return the most memory that this process ever had."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM:"))
    return int(peak.split()[1]) << 10


if __name__ == "__main__":
    done = work(sys.argv[1], Path(sys.argv[2]))
    print(done, peak_bytes())
