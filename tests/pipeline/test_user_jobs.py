from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.desk import Said, rows_of, table_of

from weft.errors import BadOption
from weft.pipeline.job import Job
from weft.pipeline.user_jobs import SqlJob, files_in, load

LOUD = '''
from pyspark.sql.functions import udf

COLUMNS = "subject string, sequence bigint"
OUTPUT_MODE = "append"


def louder(text, marks):
    return text.upper() + "!" * marks


def loud(messages, *, marks: int = 1):
    """Subjects, louder."""
    return messages.select(udf(louder)("subject", marks_of(messages, marks)).alias("subject"))


def marks_of(messages, marks):
    from pyspark.sql.functions import lit

    return lit(marks)
'''


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_file_of_python_is_a_job(spark: SparkSession, tmp_path: Path) -> None:
    job = load(written(tmp_path, "loud.py", LOUD))
    assert isinstance(job, Job)
    assert (job.name, job.summary, job.output_mode) == ("loud", "Subjects, louder.", "append")
    assert job.columns == "subject string, sequence bigint"
    # Its functions reach where the work is done, though nobody there has the file.
    assert rows_of(job.run(table_of(spark, [Said()]), job.values({"marks": "2"}))) == [
        ("SENSORS.A!!",)
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "has no function wrong, which is the job"),
        ("def wrong(", "cannot be imported: SyntaxError"),
        ("import nothing_of_the_kind", "cannot be imported: ModuleNotFoundError"),
        ("OUTPUT_MODE = 'add'\ndef wrong(messages): ...", "OUTPUT_MODE is 'add', not one of"),
    ],
)
def test_a_file_that_is_no_job_is_told(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadOption, match=said):
        load(written(tmp_path, "wrong.py", text))


def test_a_file_of_sql_is_a_job(tmp_path: Path) -> None:
    text = """-- The warm ones.
        SELECT x::int, ':no' FROM weather WHERE a > :least AND b = :word -- :not
    """
    job = load(written(tmp_path, "warm.sql", text))
    assert isinstance(job, SqlJob)
    assert (job.name, job.summary) == ("warm", "The warm ones.")
    assert list(job.parameters) == ["least", "word"]
    assert job.values({"least": "2.5", "word": "b"}) == {"least": 2.5, "word": "b"}
    with pytest.raises(BadOption, match="warm needs word: --set word=…"):
        job.values({"least": "2"})
    with pytest.raises(BadOption, match="warm has no parameter 'lest'; did you mean"):
        job.values({"lest": "2", "word": "b"})


def test_a_query_needs_no_summary() -> None:
    assert SqlJob("a", "SELECT 1 -- one").summary == ""


def test_files_that_can_be_jobs_are_found(tmp_path: Path) -> None:
    for name in ("b.sql", "a.py", "notes.txt", "not-a-name.py", "__init__.pyc"):
        (tmp_path / name).touch()
    assert files_in(tmp_path) == {"a": tmp_path / "a.py", "b": tmp_path / "b.sql"}
    assert files_in(tmp_path / "none") == {}


def test_a_query_names_the_fields_that_are_columns() -> None:
    query = SqlJob("a", "-- Warm.\n-- fields: value double, unit string\nSELECT value FROM weather")
    assert (query.summary, query.fields) == ("Warm.", "value double, unit string")
    query = SqlJob("a", "--fields: value double,\n-- fields: unit string\nSELECT 1")
    assert (query.summary, query.fields) == ("", "value double, unit string")
    assert SqlJob("a", "SELECT '-- fields: x int'").fields == ""
