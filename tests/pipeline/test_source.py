from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.pipeline.desk import S, Said, moment, numbered, write_journals

from weft.errors import BadOption
from weft.pipeline.catalog import shipped
from weft.pipeline.jobs.audit import JOB as AUDIT
from weft.pipeline.jobs.compact import JOB as COMPACT
from weft.pipeline.jobs.rates import JOB as RATES
from weft.pipeline.source import Source

SAID = numbered(
    [
        *[Said(n, n * S, subject="ab"[n % 2]) for n in range(7)],
        # Of a clock that is slow.
        Said(3, S, subject="a", origin=8),
        *[Said(n, n * S, subject="ab"[n % 2]) for n in range(7, 11)],
    ]
)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    write_journals(tmp_path, [each for each in SAID if each.position != 2])
    return Source(path=tmp_path, service="weather", since=moment(3 * S))


def numbers(table: DataFrame) -> list[tuple[int, int]]:
    return sorted((row["origin"], row["sequence"]) for row in table.collect())


def test_messages_are_chosen_by_time_and_subject(spark: SparkSession, tmp_path: Path) -> None:
    write_journals(tmp_path, SAID)
    some = Source(path=tmp_path, service="weather", since=moment(6 * S), until=moment(8 * S))
    assert numbers(some.table(spark)) == [(7, 6), (7, 7)]
    odd = Source(path=tmp_path, service="weather", subject="b", since=moment(6 * S))
    assert numbers(odd.table(spark, "origin bigint, sequence bigint, timestamp timestamp")) == [
        *((7, 7), (7, 9))
    ]
    late = Source(path=tmp_path, service="weather", since=moment(9 * S))
    assert numbers(late.table(spark)) == [(7, 9), (7, 10)]


def test_a_job_that_judges_journals_is_given_all_with_their_holes(
    spark: SparkSession, source: Source
) -> None:
    whole = Source(path=source.path, service="weather")
    table = whole.for_job(spark, AUDIT, {}, is_stream=False)
    assert len(numbers(table)) == 11
    # From a position on: what follows is not chosen by its time.
    late = source.for_job(spark, AUDIT, {}, is_stream=False)
    assert (8, 3) in numbers(late)


@pytest.mark.parametrize("chosen", [{"subject": "a"}, {"until": moment(S)}])
def test_whole_journals_cannot_be_chosen_from(
    spark: SparkSession, tmp_path: Path, chosen: dict[str, object]
) -> None:
    source = Source(path=tmp_path, service="weather", **chosen)  # type: ignore[arg-type]  # each
    with pytest.raises(BadOption, match="audit judges whole journals"):
        source.for_job(spark, AUDIT, {}, is_stream=False)


def test_a_stream_is_for_jobs_that_can(spark: SparkSession, source: Source) -> None:
    assert source.for_job(spark, RATES, RATES.parameters, is_stream=True).isStreaming
    cannot = [name for name, job in shipped().items() if job.output_mode is None]
    assert cannot == ["matrix", "audit", "compact", "replay"]
    with pytest.raises(BadOption, match="audit cannot stream: it needs the whole table"):
        source.for_job(spark, AUDIT, {}, is_stream=True)


def test_files_are_merged_in_a_folder(spark: SparkSession) -> None:
    with pytest.raises(BadOption, match="give their folder with --path"):
        Source(gateways="127.0.0.1:1").for_job(spark, COMPACT, {}, is_stream=False)
