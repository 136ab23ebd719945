"""`weft pipeline`: list and run jobs over the messages of journals."""

import difflib
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.cli.options.help_text import examples
from weft.cli.options.spark import MOMENT, SparkOptions, check_installed, spark_options
from weft.cli.output import streams
from weft.cli.output.message_text import to_json
from weft.cli.running_services import check_there
from weft.cli.spark.job_run import perform, session
from weft.cli.spark.result import Result
from weft.cli.spark.sql_check import tables_for
from weft.errors import BadOption, NotKnown
from weft.wire.subjects import checked_pattern

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from weft.pipeline.job import Job
    from weft.pipeline.user_jobs import SqlJob

_FOLDER = click.option(
    "--folder",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    default="pipelines",
    show_default=True,
    help="The folder of your own jobs.",
)


@click.group()
def pipeline() -> None:
    """Run jobs over the journal: rates, latency, an audit, your own."""


@pipeline.command("list", epilog=examples("weft pipeline list"))
@_FOLDER
@click.option("--json", "is_json", is_flag=True, help="Print JSON, one object a line.")
def list_jobs(folder: Path, is_json: bool) -> None:
    """List the jobs that are shipped with Weft, and your own."""
    check_installed()
    found = _facts(folder)
    if is_json:
        for each in found:
            streams.json_result(to_json(each))
        return
    rows = (
        (
            each["name"],
            each["summary"],
            " ".join(f"{name}={value}" for name, value in each["parameters"].items()),
            "yes" if each["can_stream"] else "",
            each["file"],
        )
        for each in found
    )
    streams.show(streams.table("jobs", ("name", "summary", "parameters", "stream", "file"), rows))


@pipeline.command(
    "run",
    epilog=examples(
        "weft pipeline run rates --path /var/lib/weft --since 1h --plot rates.html",
        "weft pipeline run audit --gateways london:7411,paris:7411",
        "weft pipeline run hot_routes --stream --set messages_s=500 \\\\",
        "    --out _WEFT.PIPELINE.hot_routes --checkpoint /var/lib/jobs/hot",
    ),
)
@click.argument("name")
@spark_options
@click.option("--subject", metavar="PATTERN", default=">", help="Only messages to these subjects.")
@click.option("--until", **MOMENT, help="Only before this time.")
@click.option("--set", "given", metavar="NAME=VALUE", multiple=True, help="A parameter of the job.")
@click.option(
    "--plot",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Plot the result to a .png, or a self-contained .html.",
)
@_FOLDER
def run_job(name: str, asked: SparkOptions, folder: Path, **options: Any) -> int:
    """Run the job NAME, and print, write or publish its result.

    The exit status is 1 if the job finds faults, as an audit may.
    """
    return _Run(name, asked, folder, **options).run()


class _Run:
    """One run of one job."""

    def __init__(self, name: str, asked: SparkOptions, folder: Path, **options: Any) -> None:
        self._asked = asked
        self._subject: str = options["subject"]
        for pattern in self._subject.split(","):
            checked_pattern(pattern.strip())
        self._until: datetime | None = options["until"]
        self._plot: Path | None = options["plot"]
        self._job = _job(name, folder)
        given = dict(_pair(text) for text in options["given"])
        if self._has_subjects and asked.out is not None:
            # The option gives the prefix of all published subjects.
            given.setdefault("prefix", asked.out)
        self._values = self._job.values(given)

    @property
    def _has_subjects(self) -> bool:
        return getattr(self._job, "makes_messages", False)

    def run(self) -> int:
        """Run the job; return the exit status."""
        from weft.pipeline.job import Job  # noqa: PLC0415  # needs pyspark

        job = self._job
        if self._plot is not None:
            self._check_plot(self._plot)
        if not isinstance(job, Job):
            return self._query(job)
        is_stream = self._asked.is_stream
        source = self._asked.source(self._subject, self._until)
        source.check(job, self._values, is_stream=is_stream)
        self._asked.check_result(has_subjects=self._has_subjects)
        check_there(self._asked)
        spark = session(job.name, self._asked.master)

        def result() -> "DataFrame":
            table = source.for_job(spark, job, self._values, is_stream=is_stream)
            # A job that judges whole journals reads the table several times.
            rows = job.run(table.persist() if job.needs_all else table, self._values)
            # Changes to folders must be done once, however often the result is evaluated.
            return rows.localCheckpoint() if job.reads_folders else rows

        rows = perform(spark, job.name, result)
        if job.output_mode is not None and is_stream:
            Result(job.name, rows, self._asked, self._has_subjects).follow(job.output_mode)
            return 0
        return self._at_once(job, rows)

    def _at_once(self, job: "Job", rows: "DataFrame") -> int:
        if self._plot is not None:
            self._draw(job.name, rows, self._plot)
            if self._asked.out is None:
                return 0
        if not self._has_subjects and self._asked.out is None:
            rows = rows.orderBy(*rows.columns)
        elif job.finds_faults:
            # It is written, and then counted.
            rows = rows.persist()
        count = Result(job.name, rows, self._asked, self._has_subjects).deliver()
        if not job.finds_faults:
            return 0
        if self._asked.out is not None:
            count = rows.count()
        if count == 0:
            streams.news(f"{job.name} found no faults")
        return 1 if count else 0

    def _query(self, job: "SqlJob") -> int:
        from weft.pipeline.tables import Tables  # noqa: PLC0415  # needs pyspark

        services = tables_for(job.text, self._asked)
        # Spark's parser sees the statement only with values in it.
        spark = session(job.name, self._asked.master, None if self._values else job.text)
        is_stream = self._asked.is_stream
        source = self._asked.source(self._subject, self._until)
        tables = Tables(source, services, job.fields)
        rows = perform(
            spark,
            job.name,
            lambda: tables.query(spark, job.text, values=self._values, is_stream=is_stream),
        )
        if is_stream:
            Result(job.name, rows, self._asked).follow()
        else:
            Result(job.name, rows, self._asked).deliver()
        return 0

    def _check_plot(self, path: Path) -> None:
        from weft.pipeline import plots  # noqa: PLC0415  # needs pyspark

        if self._asked.is_stream:
            raise BadOption("--plot and --stream exclude each other: a plot needs the whole result")
        plots.check(self._job.name, path)

    def _draw(self, name: str, rows: "DataFrame", path: Path) -> None:
        from weft.pipeline import plots  # noqa: PLC0415  # needs pyspark

        found = perform(rows.sparkSession, name, rows.collect)
        plots.draw(name, [row.asDict() for row in found], path)
        streams.news(f"the plot is in {path}")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise BadOption(f"--set {text!r} is not of the form name=value")
    return name, value


def _job(name: str, folder: Path) -> "Job | SqlJob":
    from weft.pipeline import user_jobs  # noqa: PLC0415  # needs pyspark
    from weft.pipeline.catalog import NAMES, shipped  # noqa: PLC0415

    files = user_jobs.files_in(folder)
    if name in files:
        return user_jobs.load(files[name])
    if name in NAMES:
        return shipped()[name]
    known = [*NAMES, *files]
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"only {', '.join(known)}"
    raise NotKnown(f"there is no job {name!r}; {hint}")


def _facts(folder: Path) -> list[dict[str, Any]]:
    from weft.pipeline import user_jobs  # noqa: PLC0415  # needs pyspark
    from weft.pipeline.catalog import shipped  # noqa: PLC0415

    files = user_jobs.files_in(folder)
    jobs: dict[str, Job | SqlJob] = {**shipped()}
    for name, path in files.items():
        try:
            jobs[name] = user_jobs.load(path)
        except BadOption as error:
            streams.news(str(error))
            jobs.pop(name, None)
    return [
        {
            "name": name,
            "summary": job.summary,
            "parameters": job.parameters,
            "can_stream": getattr(job, "output_mode", "update") is not None,
            "file": str(files.get(name, "")),
        }
        for name, job in jobs.items()
    ]
