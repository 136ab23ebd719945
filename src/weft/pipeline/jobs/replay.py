"""Replay: publishes journaled messages again."""

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, concat, lit

from weft.broker.journal.batcher import ARRIVED
from weft.pipeline.job import Job
from weft.wire.subjects import checked_subject


def replay(messages: DataFrame, *, prefix: str = "") -> DataFrame:
    """The messages as rows to publish again, to subjects that begin with a prefix.

    Columns: subject, reply, payload, flags. A message that several journals have is published
    once. The messages of a publisher stay in their order.

    Raises:
        BadSubject: Invalid prefix.
    """
    if prefix:
        checked_subject(prefix)
    subject = concat(lit(f"{prefix}."), col("subject")) if prefix else col("subject")
    # Receivers do not need the place of entry, and a copy is equal to the original.
    as_sent = col("flags").bitwiseAND(~ARRIVED)
    return (
        messages.dropDuplicates(["service", "origin", "sequence"])
        # Partitions are published in parallel: a publisher's messages stay in one.
        .repartition("service", "origin", "publisher")
        .sortWithinPartitions("sequence")
        .select(subject.alias("subject"), "reply", "payload", as_sent.alias("flags"))
    )


JOB = Job(
    replay,
    "subject string, reply string, payload binary, flags int, timestamp timestamp, service string,"
    " origin bigint, publisher bigint, sequence bigint",
    makes_messages=True,
)
