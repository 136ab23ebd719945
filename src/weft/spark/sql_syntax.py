"""A statement of SQL, read by Spark's own parser before there is a session.

The parser needs a JVM and nothing else: it answers in a few seconds, and the session that follows
has the same JVM.
"""

from collections.abc import Mapping


def check_syntax(statement: str, settings: Mapping[str, str]) -> None:
    """See that Spark can parse a statement, with a JVM that is there or is started with settings.

    Where other settings of Spark are there, as those of a file, nothing is said: they may change
    the language.

    Raises:
        ParseException: Spark cannot parse it.
    """
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415  # comes with pyspark
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415  # slow to import
    from pyspark.errors.exceptions.captured import convert_exception  # noqa: PLC0415  # as above

    # As a session does it: what counts only at the start of the JVM is to count.
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
