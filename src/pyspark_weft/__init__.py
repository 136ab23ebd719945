"""Found by Spark itself, so that `format("weft")` is there wherever Weft is installed."""

from weft.spark.source import WeftSource as DefaultSource

__all__ = ["DefaultSource"]
