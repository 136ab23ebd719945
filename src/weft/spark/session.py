"""A Spark session with what Weft needs: Java, the right Python, and the format `weft`."""

import os
import sys
from typing import TYPE_CHECKING

from weft.spark.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULTS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # The other one starts some fifty processes for a batch; on a local disk it is not needed.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}


def session(
    app: str = "weft", *, master: str = "local[*]", settings: dict[str, str] | None = None
) -> "SparkSession":
    """A session, with these settings of Spark on top of those that suit Weft.

    Raises:
        BadOption: there is no Java for it.
    """
    os.environ["JAVA_HOME"] = java_home()
    # Workers would take another Python from the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):
        # Nobody else is to reach it, and the machine's own name may lead nowhere.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
    from pyspark.sql import SparkSession  # noqa: PLC0415  # it looks at the environment

    builder = SparkSession.builder.appName(app).master(master)
    for name, value in {**_DEFAULTS, **(settings or {})}.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    register(made)
    return made


def register(spark: "SparkSession") -> None:
    """Make `format("weft")` known to a session, also where Spark did not find it by itself."""
    from weft.spark.source import WeftSource  # noqa: PLC0415  # needs pyspark

    spark.dataSource.register(WeftSource)
