"""Weft's messages as Spark tables: `format("weft")`, batch and streaming, pure Python."""

from weft.spark.session import register, session

__all__ = ["register", "session"]
