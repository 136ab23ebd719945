"""Services as tables, for SQL over their messages."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from weft.errors import BadOption, NotKnown
from weft.pipeline.job import Value, nearest
from weft.pipeline.source import Source
from weft.spark.columns import STANDARD

# Watermark: how late messages may be in a stream.
WATERMARK = "10 seconds"

_WORD = re.compile(r"[A-Za-z0-9_-]+")
_CODES = re.compile(
    r"^(?:.* terminated with exception: )?(?:\[[A-Z0-9_.]+\] )?| ?SQLSTATE: \w+;?|;\s*$"
)


@dataclass(frozen=True, slots=True)
class Tables:
    """Services of a mesh, each as a table with its name."""

    source: Source
    services: Sequence[str]
    # Additional columns, made of message fields: "value double, unit string".
    fields: str = ""

    def query(
        self,
        spark: SparkSession,
        text: str,
        *,
        values: Mapping[str, Value] | None = None,
        is_stream: bool = False,
    ) -> DataFrame:
        """Return the result of a query; `values` replace the parameters `:name` in it.

        Raises:
            NotKnown: Unknown service.
            BadOption: Invalid query.
        """
        words = {word.lower() for word in _WORD.findall(text)}
        for service in self.services:
            if service.lower() in words:
                self._table(spark, service, is_stream).createOrReplaceTempView(f"`{service}`")
        try:
            return spark.sql(text, args=dict(values or {}))
        except AnalysisException as error:
            raise self._in_words(error) from error

    def _table(self, spark: SparkSession, service: str, is_stream: bool) -> DataFrame:
        source = replace(self.source, service=service)
        columns = f"{STANDARD}, {self.fields}" if self.fields else STANDARD
        try:
            if is_stream:
                return source.stream(spark, columns).withWatermark("timestamp", WATERMARK)
            return source.table(spark, columns)
        except AnalysisException as error:
            raise BadOption(f"the fields {self.fields!r}: {without_codes(str(error))}") from error

    def _in_words(self, error: AnalysisException) -> NotKnown | BadOption:
        if error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
            return BadOption(without_codes(str(error)))
        parameters = error.getMessageParameters() or {}
        name = parameters.get("relationName", "").replace("`", "")
        hint = nearest(name, self.services)
        return NotKnown(f"there is no service {name!r}{hint}")


def without_codes(text: str) -> str:
    """Return Spark's text for an error, without codes and plans."""
    line = text.strip().partition("\n")[0]
    return _CODES.sub("", line).strip()
