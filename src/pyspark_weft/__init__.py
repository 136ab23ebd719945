"""Found by Spark itself, so that `format("weft")` is there wherever Weft is installed."""

from weft.spark.version_check import check_pyspark

# Spark shows why a format could not be imported: say it before an import fails.
check_pyspark()

from weft.spark.source import WeftSource as DefaultSource  # noqa: E402  # after the check

__all__ = ["DefaultSource"]
