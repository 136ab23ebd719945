"""The jobs that come with Weft, as cases; beside each, where it has one, the same in DuckDB."""

import time

from benchmarks.pipeline.book import NODE, SERVICE
from benchmarks.pipeline.stage import Stage
from weft.pipeline.catalog import shipped

_RATES = """
select time_bucket(interval '10 seconds', timestamp) as start, subject, origin, publisher,
    count(*), sum(octet_length(payload))
from read_parquet(?) group by all
"""
_HOT_ROUTES = """
select time_bucket(interval '1 second', timestamp) as start, subject, origin, publisher,
    count(*) as messages, sum(octet_length(payload)) as bytes
from read_parquet(?) group by all having messages >= 1000 or bytes >= 1000000
"""
_MATRIX = "select origin, count(*), sum(octet_length(payload)) from read_parquet(?) group by all"
_SESSIONS = """
with gaps as (
    select *, coalesce(timestamp - lag(timestamp) over who > interval '30 seconds', true) as is_new
    from read_parquet(?) window who as (partition by origin, publisher order by timestamp)
), numbered as (
    select *, sum(is_new::int) over (partition by origin, publisher order by timestamp) as session
    from gaps
)
select origin, publisher, session, min(timestamp), max(timestamp), count(*),
    sum(octet_length(payload)), count(distinct subject)
from numbered group by all
"""
IN_DUCKDB = {
    "rates": _RATES,
    "hot_routes": _HOT_ROUTES,
    "matrix": _MATRIX,
    "sessions": _SESSIONS,
}
# The others need fields that these messages do not have, or change the journal.
MEASURED = ("rates", "hot_routes", "matrix", "sessions", "audit")


def by_weft(stage: Stage, name: str) -> float:
    """Run a job over the sealed journal, to the last row of its result."""
    job = shipped()[name]
    values = job.parameters
    table = stage.source(stage.sealed, job.columns_for(values))
    began = time.monotonic()
    job.run(table, values).write.format("noop").mode("overwrite").save()
    return time.monotonic() - began


def by_duckdb(stage: Stage, name: str) -> float:
    """Have DuckDB answer the same question."""
    files = f"{stage.sealed}/service={SERVICE}/*/node={NODE}/*.parquet"
    began = time.monotonic()
    stage.duck.execute(IN_DUCKDB[name], parameters=[files])
    stage.duck.fetchall()
    return time.monotonic() - began
