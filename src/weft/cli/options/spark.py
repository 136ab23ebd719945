"""What the commands that run on Spark are told: where messages are, and where the result goes."""

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
    from weft.pipeline.sink import Flow, Folder, Subject
    from weft.pipeline.source import Source

_TRIGGER = re.compile(r"(?P<count>\d+(?:\.\d+)?)(?P<unit>ms|s|m|h)")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for; moments have a time zone."""

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
        """Where messages are, and which are wanted."""
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
        """Where the result goes; None if it is to be shown.

        Raises:
            BadSubject: it can be neither a folder nor a subject.
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
        """See that a result can go where it is to go, as far as that is known without Spark.

        Raises:
            BadOption: a folder is not empty, or a stream could not go on where it was.
            BadSubject: it can be neither a folder nor a subject.
        """
        from weft.pipeline.sink import Folder  # noqa: PLC0415  # needs pyspark

        to = self.destination(has_subjects=has_subjects)
        if self.is_stream:
            self.flow("append")
        elif isinstance(to, Folder):
            to.check_new()

    def flow(self, output_mode: "OutputMode") -> "Flow":
        """How a stream goes on.

        Raises:
            BadOption: what it writes could not go on where it was.
        """
        from weft.pipeline.sink import Flow  # noqa: PLC0415  # needs pyspark

        if self.out is not None and not self.checkpoint:
            raise BadOption("a stream with --out needs --checkpoint: there it keeps how far it is")
        return Flow(_trigger_s(self.trigger), output_mode, self.checkpoint)


def check_installed() -> None:
    """See that what these commands need is there.

    Raises:
        BadOption: it is not.
    """
    for package in ("crc32c", "pandas", "pyarrow", "pyspark"):
        if importlib.util.find_spec(package) is None:
            raise BadOption(f'this needs {package}: pip install "weft-mesh[spark]"')
    check_pyspark()


def moment(text: str | None) -> datetime | None:
    """A moment as people write it: some time ago, or ISO 8601, of this machine without a zone.

    Raises:
        BadOption: it is neither.
    """
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return datetime.now(UTC) - timedelta(seconds=beginning(text)["ago"])
    return found.astimezone() if found.tzinfo is None else found


def spark_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that they all share; it gets them as one `asked`."""

    @functools.wraps(command)
    def with_options(**options: Any) -> Any:
        check_installed()
        if options["path"] is not None and options["gateways"] is not None:
            raise click.UsageError("give --path or --gateways, not both")
        asked = Asked(**{name: options.pop(name) for name in Asked.__dataclass_fields__})
        return command(asked=asked, **options)

    for option in reversed(_OPTIONS):
        option(with_options)
    return with_options


def _trigger_s(text: str) -> float | None:
    """So often, in seconds; None for what is there now, once."""
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
        help="Read the journal in the folder that a gateway was given with --data.",
    ),
    click.option(
        "--gateways",
        metavar="HOST:PORT,…",
        help="Read the journals of these gateways; without --path, --gateway is read.",
    ),
    gateway_option("Where a result is published."),
    TLS_CA,
    KEY_FILE,
    service_option("The service to read, and to publish a result to."),
    click.option("--since", **MOMENT, help="Only from then on: '5m' ago, or 2026-11-16T09:30Z."),
    click.option("--stream", "is_stream", is_flag=True, help="Go on with what comes, until ^C."),
    click.option(
        "--trigger",
        metavar="TIME",
        default="1s",
        show_default=True,
        help="How often a stream gives a result; 'now': what is there, and then end.",
    ),
    click.option(
        "--checkpoint",
        metavar="DIR",
        default="",
        help="Where a stream keeps how far it is, to go on there.",
    ),
    click.option(
        "--out",
        metavar="DIR|SUBJECT",
        help="Write Parquet to a folder (with a slash, or there already, or .parquet), or publish.",
    ),
    click.option(
        "--master", metavar="URL", help="The Spark to run on; this machine if none is given."
    ),
    click.option("--json", "is_json", is_flag=True, help="Print JSON, one object a line."),
)
