"""Spark session with the settings that Weft needs, on any master, and the format `weft`."""

from typing import TYPE_CHECKING

from weft.errors import BadOption
from weft.spark.cluster import check_reached, chosen, is_connect, needs_of, prepare
from weft.spark.jvm_launch import ended_if_interrupted
from weft.spark.sql_syntax import check_syntax
from weft.spark.version_check import check_pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EVERYWHERE = {"spark.sql.session.timeZone": "UTC"}


def session(
    app: str = "weft",
    *,
    master: str | None = None,
    settings: dict[str, str] | None = None,
    statement: str | None = None,
) -> "SparkSession":
    """Return a session; `settings` take precedence over the ones that Weft sets.

    Args:
        app: The name that Spark shows.
        master: `local[*]`, `spark://host:port`, `sc://host:port` or another that Spark knows. If
            none is given: the one of `spark-submit` or of SPARK_REMOTE, else `local[*]`.
        settings: Further settings of Spark. A Spark Connect server ignores settings that apply
            only at its start, with a warning.
        statement: An SQL statement to run in it. If Spark cannot parse it, the session is not
            started; not checked by Spark Connect and `spark-submit`.

    Raises:
        ParseException: Spark cannot parse the statement.
        BadOption: PySpark is missing or too old, no suitable Java, no answer at that address, or
            Spark does not start.
    """
    check_pyspark()
    at = chosen(master)
    needs = needs_of(at)
    check_reached(at)
    prepare(needs)
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415  # comes with pyspark
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415  # as above
    from pyspark.sql import SparkSession  # noqa: PLC0415  # it looks at the environment

    builder = SparkSession.builder.appName(app)
    if at is not None:
        builder = builder.remote(at) if is_connect(at) else builder.master(at)
    given = {**_EVERYWHERE, **needs.settings, **(settings or {})}
    for name, value in given.items():
        builder = builder.config(name, value)
    try:
        with ended_if_interrupted():
            if statement is not None and at is not None and not is_connect(at):
                check_syntax(statement, {**given, "spark.app.name": app, "spark.master": at})
            made = builder.getOrCreate()
    except (Py4JJavaError, PySparkRuntimeError) as error:
        told = error.java_exception if isinstance(error, Py4JJavaError) else error
        reason = str(told).partition("\n")[0]
        raise BadOption(f"Spark does not start on {at}: {reason}; its log says more") from error
    register(made)
    return made


def register(spark: "SparkSession") -> None:
    """Register `format("weft")` with a session, in case Spark did not find it by itself.

    Raises:
        BadOption: PySpark is too old.
    """
    check_pyspark()
    from weft.spark.source import WeftSource  # noqa: PLC0415  # needs pyspark

    spark.dataSource.register(WeftSource)
