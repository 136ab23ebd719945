import subprocess
import sys

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from tests.pipeline.test_sql_statement import LEGAL, REFUSED

from weft.spark.sql_syntax import check_syntax

SCRIPT = """
import weft.spark
from pyspark import SparkContext
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

def started(statement):
    settings = {"spark.ui.enabled": "false", "spark.log.level": "ERROR"}
    return weft.spark.session(master="local[1]", settings=settings, statement=statement)

try:
    started("SELECT * FORM x y")
except ParseException as error:
    print(error)
assert SparkContext._active_spark_context is None
assert SparkSession.getActiveSession() is None
print(started("SELECT 7").sql("SELECT 7").collect())
"""


@pytest.fixture
def settings(spark: SparkSession) -> dict[str, str]:
    return dict(spark.sparkContext.getConf().getAll())


@pytest.mark.parametrize("text", [each for each in LEGAL if "BEGIN" not in each])
def test_spark_takes_what_is_said_to_be_legal(settings: dict[str, str], text: str) -> None:
    check_syntax(text, settings)


@pytest.mark.parametrize("text", [text for text, _ in REFUSED])
def test_spark_refuses_what_is_refused_without_it(settings: dict[str, str], text: str) -> None:
    with pytest.raises(ParseException):
        check_syntax(text, settings)


def test_with_other_settings_nothing_is_said(settings: dict[str, str]) -> None:
    few = {name: value for name, value in settings.items() if not name.startswith("spark.sql.")}
    check_syntax("SELEC 1", few)


def test_a_mistake_is_known_before_there_is_a_session() -> None:
    done = subprocess.run(  # noqa: S603  # ours
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=True
    )
    assert "Syntax error at or near 'x'" in done.stdout
    assert "[Row(7=7)]" in done.stdout
