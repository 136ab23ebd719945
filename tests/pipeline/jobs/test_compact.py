from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.desk import Said, rows_of, write_journals

from weft.errors import BadOption
from weft.journal.parquet.seal import seal_all
from weft.journal.segment.file_names import segments_of
from weft.pipeline.jobs.compact import FOLDERS, compact
from weft.pipeline.source import sealed_days

DAY_US = 86_400_000_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two gateways; London has two days of three segments each."""
    for node, days in (("london", 2), ("paris", 1)):
        for number in range(3 * days):
            write_journals(
                tmp_path,
                [
                    Said(n, n + number // 3 * DAY_US, node=node, position=n)
                    for n in range(10 * number, 10 * number + 10)
                ],
            )
        list(seal_all(tmp_path, "weather", node))
    return tmp_path


@pytest.mark.req("SPK-4")
def test_the_small_files_of_a_day_become_one(spark: SparkSession, root: Path) -> None:
    days = sealed_days(root, "weather")
    assert [day[2:] for day in days] == [
        ("2023-11-14", "london"),
        ("2023-11-14", "paris"),
        ("2023-11-15", "london"),
    ]
    folders = spark.createDataFrame(days, FOLDERS)
    rows = rows_of(compact(folders).drop("bytes"))
    files = [(each.node, each.first, each.last) for each in segments_of(root, "weather")]
    assert files == [("london", 0, 29), ("london", 30, 59), ("paris", 0, 29)]
    assert [(row[1:3], row[4:]) for row in rows] == [
        (("2023-11-14", "london"), (3, 30, None)),
        (("2023-11-14", "paris"), (3, 30, None)),
        (("2023-11-15", "london"), (3, 30, None)),
    ]
    assert {row[3] for row in rows} == {each.path.name for each in segments_of(root, "weather")}
    assert rows_of(compact(folders)) == []
    read = spark.read.format("weft").options(path=str(root), service="weather").load()
    assert read.count() == 90


def test_what_stays_says_why(spark: SparkSession, root: Path) -> None:
    damaged = segments_of(root, "weather", "paris")[1].path
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    days = [day for day in sealed_days(root, "weather") if day[3] == "paris"]
    ((_, _, node, file, merged, *_, why),) = rows_of(compact(spark.createDataFrame(days, FOLDERS)))
    assert (node, file, merged) == ("paris", damaged.name, None)
    assert "its checksum is" in why


def test_a_target_is_a_size(spark: SparkSession) -> None:
    with pytest.raises(BadOption, match="target_bytes is 0"):
        compact(spark.createDataFrame([], FOLDERS), target_bytes=0)
