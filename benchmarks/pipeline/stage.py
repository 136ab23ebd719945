"""What the cases of this benchmark share: the same messages sealed and open, Spark, and DuckDB."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

import weft.spark
from benchmarks.pipeline.book import NODE, SERVICE, Progress, write
from weft.journal.parquet.seal import seal_all

if TYPE_CHECKING:
    import duckdb

# Not where temporary files are: that may be no disk.
DISK = Path("build")


@dataclass(frozen=True, slots=True)
class Stage:
    """One journal in three states, each in a folder of its own."""

    folder: Path
    rows: int
    spark: SparkSession
    duck: "duckdb.DuckDBPyConnection"

    @property
    def full(self) -> Path:
        """Segments that are full, and not sealed yet."""
        return self.folder / "full"

    @property
    def sealed(self) -> Path:
        """The same messages as Parquet."""
        return self.folder / "sealed"

    @property
    def open(self) -> Path:
        """The same messages in one segment that is still open."""
        return self.folder / "open"

    def source(self, root: Path, schema: str | None = None) -> DataFrame:
        """A journal as Weft's own source reads it."""
        reader = self.spark.read.format("weft").options(path=str(root), service=SERVICE)
        return (reader if schema is None else reader.schema(schema)).load()

    def parquet(self) -> DataFrame:
        """The sealed files as Spark itself reads them."""
        return self.spark.read.parquet(str(self.sealed))


@contextlib.contextmanager
def staged(rows: int, told: Progress) -> Iterator[Stage]:
    """Write a journal of so many messages and start what reads it; all is gone afterwards.

    Args:
        rows: how many messages.
        told: is called with how many of twice as many were written.
    """
    import duckdb  # noqa: PLC0415  # installed only where this is measured

    DISK.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="pipeline-", dir=DISK))
        ).absolute()
        write(folder / "full", rows, told)
        write(folder / "open", rows, lambda done: told(rows + done), is_open=True)
        shutil.copytree(folder / "full", folder / "sealed")
        list(seal_all(folder / "sealed", SERVICE, NODE))
        spark = weft.spark.session("bench-spark", settings={"spark.log.level": "ERROR"})
        stack.callback(spark.stop)
        duck = stack.enter_context(duckdb.connect())
        yield Stage(folder, rows, spark, duck)
