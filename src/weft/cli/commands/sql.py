"""`weft sql`: a query over the messages of services, each service a table."""

import click

from weft.cli.options.help_text import examples
from weft.cli.options.spark import SparkOptions, spark_options
from weft.cli.spark.job_run import perform, session
from weft.cli.spark.result import Result
from weft.cli.spark.sql_check import tables_for


@click.command(
    epilog=examples(
        'weft sql "SELECT subject, count(*) FROM weather GROUP BY subject" --path /var/lib/weft',
        "weft sql \"SELECT avg(value) FROM weather WHERE subject LIKE 'sensors.%'\" \\\\",
        '    --fields "value double" --since 1h',
        'weft sql "SELECT * FROM `order-desk`" --stream',
    )
)
@click.argument("query")
@spark_options
@click.option(
    "--fields",
    metavar="COLUMNS",
    default="",
    help='Columns made of message fields: "value double, unit string".',
)
def sql(query: str, asked: SparkOptions, fields: str) -> None:
    """Run a QUERY of Spark SQL; each service is a table.

    Names with a hyphen need backticks. The columns are the standard ones, and those of --fields.
    """
    services = tables_for(query, asked)
    spark = session("sql", asked.master, query)
    from weft.pipeline.tables import Tables  # noqa: PLC0415  # needs pyspark

    tables = Tables(asked.source(), services, fields)
    rows = perform(spark, "sql", lambda: tables.query(spark, query, is_stream=asked.is_stream))
    result = Result("sql", rows, asked)
    if asked.is_stream:
        result.follow()
    else:
        result.deliver()
