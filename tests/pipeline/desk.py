"""Messages that tests make by hand: as a table, and as the journals of a mesh."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, unix_micros
from pyspark.sql.types import TimestampType
from tests.journal.desk import batch_of, place_in

from weft.broker.journal.batcher import ARRIVED
from weft.journal.segment.writer import OpenSegment
from weft.pipeline.job import Job, Value
from weft.wire.frames import Flag, Kind, Stamp, encode, stamp_frame
from weft.wire.message.message import Message

# The beginning of a minute.
BEGAN_S = 1_700_000_040
S = 1_000_000


class Said(NamedTuple):
    """One message in one journal; times are µs after BEGAN_S."""

    sequence: int = 0
    at_us: int = 0
    subject: str = "sensors.a"
    publisher: int = 3
    origin: int = 7
    node: str = "london"
    position: int = 0
    payload: bytes = b"four"
    sent_us: int | None = None
    service: str = "weather"
    has_arrived: bool = False

    def heard_at(self, node: str) -> "Said":
        """The same message, in the journal of another node."""
        return self._replace(node=node, has_arrived=True)


def numbered(said: Iterable[Said]) -> list[Said]:
    """The same messages, with the positions in which each journal has them."""
    ends: dict[tuple[str, str], int] = {}
    found = []
    for each in said:
        position = ends.get((each.service, each.node), 0)
        ends[each.service, each.node] = position + 1
        found.append(each._replace(position=position))
    return found


def table_of(spark: SparkSession, said: Iterable[Said]) -> DataFrame:
    """Messages as `format("weft")` gives them."""
    rows = [
        {
            **each._asdict(),
            "reply": "",
            "flags": 8 | each.has_arrived * ARRIVED,
            "timestamp": moment(each.at_us),
            "sent": None if each.sent_us is None else moment(each.sent_us),
        }
        for each in said
    ]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=_ARROW))


def write_journals(root: Path, said: Iterable[Said]) -> None:
    """Messages as the journals of their nodes; a hole in the positions ends a segment."""
    in_order = sorted(said, key=lambda each: (each.service, each.node, each.position))
    numbered_rows = enumerate(in_order)
    for (service, node, _), rows in groupby(
        numbered_rows, lambda row: (row[1].service, row[1].node, row[1].position - row[0])
    ):
        messages = [each for _, each in rows]
        segment = OpenSegment(place_in(root, service, node), messages[0].position)
        segment.append(batch_of([_frame(each) for each in messages], messages[0].position, 10))
        segment.finish()


def read_journals(
    spark: SparkSession, root: Path, job: Job, values: Mapping[str, Value], *, is_stream: bool
) -> DataFrame:
    """The journals of the service `weather`, with the columns that a job needs."""
    reader: Any = spark.readStream if is_stream else spark.read
    columns = job.columns_for(values)
    options = {"path": str(root), "service": "weather", "failOnDataLoss": "false"}
    if is_stream:
        options["startingOffsets"] = "earliest"
    found: DataFrame = reader.format("weft").options(**options).schema(columns).load()
    return found


def rows_of(result: DataFrame) -> list[tuple[Any, ...]]:
    """Rows in order; times are µs after BEGAN_S."""
    columns = [
        (unix_micros(col(field.name)) - BEGAN_S * S).alias(field.name)
        if isinstance(field.dataType, TimestampType)
        else col(field.name)
        for field in result.schema
    ]
    return sorted((tuple(row) for row in result.select(*columns).collect()), key=repr)


def streamed(result: DataFrame, output_mode: str = "append") -> list[tuple[Any, ...]]:
    """The rows of a streaming result, after what there was to read."""
    query = (
        result.writeStream.format("memory")
        .queryName("streamed")
        .outputMode(output_mode)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    return rows_of(result.sparkSession.table("streamed"))


def moment(at_us: int) -> datetime:
    """A time of a message."""
    return datetime.fromtimestamp(BEGAN_S + at_us / S, UTC)


def _frame(each: Said) -> bytes:
    body, flags = each.payload, Flag.BARE
    if each.sent_us is not None:
        body, flags = Message(sent=moment(each.sent_us)).encode(), Flag.NONE
    frame = bytearray(encode(Kind.MESSAGE, each.subject.encode(), body, b"", flags))
    time_ns = (BEGAN_S * S + each.at_us) * 1000
    stamp_frame(frame, 0, Stamp(each.origin, each.publisher, each.sequence, time_ns))
    frame[5] |= each.has_arrived * ARRIVED
    return bytes(frame)


_ARROW = pa.schema(
    [
        *((name, pa.string()) for name in ("service", "node", "subject", "reply")),
        *((name, pa.int64()) for name in ("origin", "publisher", "sequence", "position")),
        ("flags", pa.int32()),
        ("payload", pa.binary()),
        *((name, pa.timestamp("us", "UTC")) for name in ("timestamp", "sent")),
    ]
)
