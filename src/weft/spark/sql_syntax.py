"""Syntax check of an SQL statement with Spark's own parser, before a session starts.

The parser needs only a JVM: it answers in a few seconds, and the session that follows uses the same
JVM.
"""

from collections.abc import Mapping


def check_syntax(statement: str, settings: Mapping[str, str]) -> None:
    """Check that Spark can parse a statement, in a running JVM or one started with settings.

    Skipped if Spark has other SQL settings, such as those of a file: they may change the language.

    Raises:
        ParseException: Spark cannot parse it.
    """
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415  # comes with pyspark
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415  # slow to import
    from pyspark.errors.exceptions.captured import convert_exception  # noqa: PLC0415  # as above

    # As a session does: settings of the JVM only take effect at its start.
    SparkContext._ensure_initialized(conf=SparkConf().setAll(list(settings.items())))
    jvm = SparkContext._jvm
    if jvm is None:
        return
    names = (pair._1() for pair in jvm.org.apache.spark.SparkConf().getAll())
    if any(name.startswith("spark.sql.") and name not in settings for name in names):
        return
    try:
        jvm.org.apache.spark.sql.execution.SparkSqlParser().parsePlan(statement)
    except Py4JJavaError as error:
        raise convert_exception(error.java_exception) from None
