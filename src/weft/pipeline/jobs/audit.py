"""Audit of the journals of a mesh: whether every message arrived everywhere, once, in order."""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window, functions
from pyspark.sql.functions import col, count, lag, lit, row_number

from weft.pipeline.entry_gateway import entered
from weft.pipeline.job import Job

_RESULT = ("kind", "service", "node", "origin", "subject", "first", "last", "count")
_OF = ("service", "node", "origin")


def audit(messages: DataFrame) -> DataFrame:
    """Faults in the journals of a mesh: lost, doubled and misordered messages, missing positions.

    Columns: kind, service, node, origin, subject, first, last, count. No rows: no faults.

    - missing_positions: the journal of the node lacks the positions `first` … `last`. They were
      removed or damaged, or lost in a crash before they were acknowledged.
    - doubled: the node has messages more than once, `count` too many.
    - misordered: messages came after a later one of the same publisher.
    - lost: messages that the gateway where they entered has, and the node has not, though it has an
      earlier and a later one of their subject.

    `first` and `last` are sequence numbers but for missing_positions.
    """
    needed = messages.select(
        *("service", "node", "origin", "publisher", "sequence", "position"),
        *("subject", "flags"),
    )
    found = [_missing_positions(needed), _doubled(needed), _misordered(needed), _lost(needed)]
    return reduce(DataFrame.unionByName, found)


def _missing_positions(messages: DataFrame) -> DataFrame:
    in_order = Window.partitionBy("service", "node").orderBy("position")
    gaps = messages.select(
        *("service", "node", "position"), lag("position").over(in_order).alias("before")
    ).where(col("position") > col("before") + 1)
    return gaps.select(
        lit("missing_positions").alias("kind"),
        *("service", "node"),
        lit(None).cast("bigint").alias("origin"),
        lit(None).cast("string").alias("subject"),
        (col("before") + 1).alias("first"),
        (col("position") - 1).alias("last"),
        (col("position") - col("before") - 1).alias("count"),
    )


def _doubled(messages: DataFrame) -> DataFrame:
    copies = messages.groupBy(*_OF, "sequence").agg(
        functions.min("subject").alias("subject"), (count(lit(1)) - 1).alias("extra")
    )
    return _faults("doubled", copies.where(col("extra") > 0), functions.sum("extra"))


def _misordered(messages: DataFrame) -> DataFrame:
    copies = Window.partitionBy(*_OF, "sequence").orderBy("position")
    before = (
        Window.partitionBy(*_OF, "publisher")
        .orderBy("position")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    # A late copy is a fault of its own; only the first occurrence counts here.
    firsts = messages.withColumn("copy", row_number().over(copies)).where(col("copy") == 1)
    late = firsts.withColumn("reached", functions.max("sequence").over(before))
    return _faults("misordered", late.where(col("sequence") < col("reached")), count(lit(1)))


def _lost(messages: DataFrame) -> DataFrame:
    # First and last sequence number that a node has, for every subject of an origin.
    heard = messages.groupBy(*_OF, "subject").agg(
        functions.min("sequence").alias("from"), functions.max("sequence").alias("until")
    )
    known = entered(messages).select("service", "origin", "subject", "sequence").distinct()
    expected = known.join(heard, ["service", "origin", "subject"]).where(
        (col("sequence") > col("from")) & (col("sequence") < col("until"))
    )
    there = messages.select(*_OF, "sequence")
    return _faults("lost", expected.join(there, [*_OF, "sequence"], "left_anti"), count(lit(1)))


def _faults(kind: str, messages: DataFrame, how_many: Column) -> DataFrame:
    """Return faulty messages as rows of the result."""
    faults = messages.groupBy(*_OF, "subject").agg(
        functions.min("sequence").alias("first"),
        functions.max("sequence").alias("last"),
        how_many.alias("count"),
    )
    return faults.select(lit(kind).alias("kind"), *_RESULT[1:])


JOB = Job(
    audit,
    "timestamp timestamp, service string, node string, origin bigint, publisher bigint,"
    " sequence bigint, position bigint, subject string, flags int",
    needs_all=True,
    finds_faults=True,
)
