"""Checks of a command's SQL before Spark starts."""

from typing import TYPE_CHECKING

from weft.cli.running_services import services_at
from weft.errors import NotKnown
from weft.pipeline.sql_statement import check_statement, unknown_tables
from weft.spark.cluster import has_only_own_tables

if TYPE_CHECKING:
    from weft.cli.options.spark import SparkOptions


def tables_for(query: str, asked: "SparkOptions") -> list[str]:
    """Return the available services, if the query can be one over them.

    Raises:
        BadOption: The query is certainly invalid, or its result cannot be written.
        NotKnown: It reads a table that does not exist.
        Unreachable: A gateway does not answer.
    """
    check_statement(query)
    asked.check_result()
    services = services_at(asked)
    unknown = unknown_tables(query, services) if has_only_own_tables(asked.master) else []
    if unknown:
        from weft.pipeline.job import nearest  # noqa: PLC0415  # needs pyspark

        hint = nearest(unknown[0], services)
        raise NotKnown(f"there is no service {unknown[0]!r}{hint}")
    return services
