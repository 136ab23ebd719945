"""Options of the commands that run on Spark: source of messages and destination of results."""

import functools
import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.cli.options.target import KEY_FILE, TLS_CA, gateway_option, service_option
from weft.errors import BadOption
from weft.spark.version_check import check_pyspark
from weft.wire.since import beginning
from weft.wire.subjects import checked_subject

if TYPE_CHECKING:
    from weft.pipeline.job import OutputMode
    from weft.pipeline.sink import Folder, StreamPlan, Subject
    from weft.pipeline.source import Source

_TRIGGER = re.compile(r"(?P<count>\d+(?:\.\d+)?)(?P<unit>ms|s|m|h)")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Values of the shared options; times have a time zone."""

    path: Path | None
    gateways: str | None
    gateway: str
    tls_ca: str | None
    key_file: str | None
    service: str
    since: datetime | None
    is_stream: bool
    trigger: str
    checkpoint: str
    out: str | None
    master: str | None
    is_json: bool

    def source(self, subject: str = ">", until: datetime | None = None) -> "Source":
        """Return the source of messages, with their selection."""
        from weft.pipeline.source import Source  # noqa: PLC0415  # needs pyspark

        is_remote = self.path is None
        return Source(
            path=self.path,
            gateways=(self.gateways or self.gateway) if is_remote else None,
            tls_ca=self.tls_ca if is_remote else None,
            key_file=self.key_file if is_remote else None,
            service=self.service,
            subject=subject,
            since=self.since,
            until=until,
        )

    def destination(self, *, has_subjects: bool = False) -> "Folder | Subject | None":
        """Return the destination of the result; None to print it.

        Raises:
            BadSubject: Neither a folder nor a valid subject.
        """
        from weft.pipeline.sink import Folder, Subject  # noqa: PLC0415  # needs pyspark

        if self.out is None:
            return None
        if "/" in self.out or self.out.endswith(".parquet") or Path(self.out).is_dir():
            return Folder(self.out)
        checked_subject(self.out)
        subject = None if has_subjects else self.out
        return Subject(self.gateway, self.service, subject, self.tls_ca, self.key_file)

    def check_result(self, *, has_subjects: bool = False) -> None:
        """Check that the result can be written, as far as that is known without Spark.

        Raises:
            BadOption: The folder is not empty, or a stream has no checkpoint.
            BadSubject: Neither a folder nor a valid subject.
        """
        from weft.pipeline.sink import Folder  # noqa: PLC0415  # needs pyspark

        to = self.destination(has_subjects=has_subjects)
        if self.is_stream:
            self.flow("append")
        elif isinstance(to, Folder):
            to.check_new()

    def flow(self, output_mode: "OutputMode") -> "StreamPlan":
        """Return the settings of a stream.

        Raises:
            BadOption: It writes a result, but has no checkpoint.
        """
        from weft.pipeline.sink import StreamPlan  # noqa: PLC0415  # needs pyspark

        if self.out is not None and not self.checkpoint:
            raise BadOption("a stream with --out needs --checkpoint, where it stores its progress")
        return StreamPlan(_trigger_s(self.trigger), output_mode, self.checkpoint)


def check_installed() -> None:
    """Check that the packages for these commands are installed.

    Raises:
        BadOption: Missing package.
    """
    for package in ("crc32c", "pandas", "pyarrow", "pyspark"):
        if importlib.util.find_spec(package) is None:
            raise BadOption(f'this needs {package}: pip install "weft-mesh[spark]"')
    check_pyspark()


def moment(text: str | None) -> datetime | None:
    """Return the time in a text: an age, or ISO 8601, which without a zone is local time.

    Raises:
        BadOption: Neither of them.
    """
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return datetime.now(UTC) - timedelta(seconds=beginning(text)["ago"])
    return found.astimezone() if found.tzinfo is None else found


def spark_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the shared options to a command, which gets them as one `asked`."""

    @functools.wraps(command)
    def with_options(**options: Any) -> Any:
        check_installed()
        if options["path"] is not None and options["gateways"] is not None:
            raise click.UsageError("give --path or --gateways, not both")
        asked = SparkOptions(
            **{name: options.pop(name) for name in SparkOptions.__dataclass_fields__}
        )
        return command(asked=asked, **options)

    for option in reversed(_OPTIONS):
        option(with_options)
    return with_options


def _trigger_s(text: str) -> float | None:
    """Return the interval in seconds; None to process the current messages once."""
    if text == "now":
        return None
    found = _TRIGGER.fullmatch(text)
    if found is None:
        raise BadOption(f"--trigger {text!r} is not 'now', nor a time such as '500ms' or '10s'")
    return float(found["count"]) * _UNIT_S[found["unit"]]


MOMENT: dict[str, Any] = {
    "metavar": "WHEN",
    "callback": lambda _context, _option, text: moment(text),
}

_OPTIONS = (
    click.option(
        "--path",
        metavar="DATA",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        help="Read the journal in the data folder of a gateway (--data).",
    ),
    click.option(
        "--gateways",
        metavar="HOST:PORT,…",
        help="Read the journals of these gateways (default: of --gateway).",
    ),
    gateway_option("The gateway that a result is published to."),
    TLS_CA,
    KEY_FILE,
    service_option("The service to read, and to publish a result to."),
    click.option("--since", **MOMENT, help="Only from this time on: '5m' ago, 2026-11-16T09:30Z."),
    click.option(
        "--stream", "is_stream", is_flag=True, help="Process new messages, too, until ^C."
    ),
    click.option(
        "--trigger",
        metavar="TIME",
        default="1s",
        show_default=True,
        help="Interval between results of a stream; 'now' reads the current messages and exits.",
    ),
    click.option(
        "--checkpoint",
        metavar="DIR",
        default="",
        help="Folder for the progress of a stream, which continues there after a restart.",
    ),
    click.option(
        "--out",
        metavar="DIR|SUBJECT",
        help="Write Parquet to a folder (with a slash, existing, or .parquet), or publish.",
    ),
    click.option("--master", metavar="URL", help="The Spark master (default: this machine)."),
    click.option("--json", "is_json", is_flag=True, help="Print JSON, one object a line."),
)
