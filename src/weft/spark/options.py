"""Options of readers and writers, by the names that Spark users know; errors name the option."""

import difflib
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from weft.broker.handshake import SERVICE_NAME
from weft.errors import BadOption, BadSubject, shortened
from weft.journal.read.sources import FolderShelf, Shelf
from weft.journal.segment.file_names import root_of
from weft.spark.columns import Mode, Parsing, is_standard
from weft.spark.remote import RemoteShelf
from weft.wire.address import addresses_from
from weft.wire.subjects import checked_pattern, checked_subject

READING = (
    "path",
    "gateways",
    "tlsCa",
    "keyFile",
    "waitSeconds",
    "service",
    "subscribe",
    "startingOffsets",
    "startingTimestamp",
    "endingOffsets",
    "maxOffsetsPerTrigger",
    "minPartitions",
    "failOnDataLoss",
    "mode",
    "columnNameOfCorruptRecord",
    "fieldColumns",
)
WRITING = ("gateways", "service", "subject", "tlsCa", "keyFile", "waitSeconds")
# Timeout for an unreachable gateway: it may be restarting.
WAIT_S = 60
# Options of Spark itself, which it passes on.
_OF_SPARK = ("checkpointLocation",)

# `earliest`, `latest`, or the next position of every node.
Offsets = Literal["earliest", "latest"] | dict[str, int]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of a reader."""

    shelf: Shelf
    patterns: tuple[bytes, ...]
    starting: Offsets | None
    starting_ns: int | None
    ending: Offsets
    max_rows: int | None
    min_partitions: int | None
    may_lack: bool
    parsing: Parsing


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a writer; `subject` applies if there is no such column."""

    gateway: str
    service: str
    subject: str | None
    tls_ca: str | None
    key_file: str | None
    wait_s: float

    def tls(self) -> ssl.SSLContext | None:
        """Return the TLS context for a tls:// gateway; None for the system's certificates."""
        return None if self.tls_ca is None else ssl.create_default_context(cafile=self.tls_ca)


def read_options(given: Mapping[str, str]) -> ReadOptions:
    """Return the options of a reader.

    Raises:
        BadOption: Unknown option or invalid value.
    """
    options = _known(given, READING)
    if ("path" in options) == ("gateways" in options):
        raise BadOption(
            "format weft needs the option path, the data folder of a gateway, or gateways,"
            " HOST:PORT of some; not both"
        )
    if "startingOffsets" in options and "startingTimestamp" in options:
        raise BadOption("give startingOffsets or startingTimestamp, not both")
    ending = _offsets(options, "endingOffsets")
    max_rows = _positive(options, "maxOffsetsPerTrigger")
    return ReadOptions(
        shelf=_shelf(options),
        patterns=_patterns(options.get("subscribe", ">")),
        starting=_offsets(options, "startingOffsets"),
        starting_ns=_timestamp(options.get("startingTimestamp")),
        # An empty object is a valid value, too.
        ending="latest" if ending is None else ending,
        max_rows=max_rows,
        min_partitions=_positive(options, "minPartitions"),
        may_lack=not _is_true(options, "failOnDataLoss", default=True),
        parsing=_parsing(options),
    )


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """Return the options of a writer.

    Raises:
        BadOption: Unknown option or invalid value.
    """
    options = _known(given, WRITING)
    if "gateways" not in options:
        raise BadOption("to write, format weft needs the option gateways: HOST:PORT")
    gateways = addresses_from(options["gateways"])
    if len(gateways) > 1:
        raise BadOption("to write, give one gateway: only it has the list of committed batches")
    subject = options.get("subject")
    if subject is not None:
        try:
            checked_subject(subject)
        except BadSubject as error:
            raise BadOption(f"subject: {error}") from error
    service = _service(options.get("service", "default"))
    files = (options.get("tlsCa"), options.get("keyFile"))
    return WriteOptions(str(gateways[0]), service, subject, *files, _wait_s(options))


def _known(given: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Return the options by their canonical names."""
    lowered = {name.lower(): name for name in (*names, *_OF_SPARK)}
    options: dict[str, str] = {}
    for name, value in given.items():
        known = lowered.get(name.lower())
        if known is None:
            raise BadOption(f"format weft has no option {name!r}{_hint(name, names)}")
        options[known] = value
    return options


def _hint(name: str, names: tuple[str, ...]) -> str:
    lowered = {known.lower(): known for known in names}
    near = difflib.get_close_matches(name.lower(), lowered, 1)
    return f"; did you mean {lowered[near[0]]!r}?" if near else f", only {', '.join(names)}"


def _shelf(options: dict[str, str]) -> Shelf:
    service = _service(options.get("service", "default"))
    if "path" in options:
        return FolderShelf(_root(options["path"]), service)
    addresses = addresses_from(options["gateways"])
    files = (options.get("tlsCa"), options.get("keyFile"))
    return RemoteShelf(addresses, service, *files, _wait_s(options))


def _root(text: str) -> Path:
    root = root_of(Path(text.removeprefix("file://")))
    if not root.is_dir():
        raise BadOption(f"path {text!r} is not a folder on this machine")
    return root


def _service(name: str) -> str:
    if SERVICE_NAME.fullmatch(name.encode(errors="surrogatepass")) is None:
        raise BadOption(f"service {shortened(name)} is not a valid service name")
    return name


def _patterns(text: str) -> tuple[bytes, ...]:
    try:
        return tuple(checked_pattern(name.strip()) for name in text.split(","))
    except BadSubject as error:
        raise BadOption(f"subscribe: {error}") from error


def _parsing(options: Mapping[str, str]) -> Parsing:
    mode = options.get("mode", Mode.PERMISSIVE).upper()
    if mode not in set(Mode):
        raise BadOption(f"mode is {shortened(mode)}; it must be {', '.join(Mode)}")
    corrupt = options.get("columnNameOfCorruptRecord", Parsing().corrupt)
    if is_standard(corrupt):
        raise BadOption(f"columnNameOfCorruptRecord cannot be {corrupt!r}: every message has that")
    names = [each.strip() for each in options.get("fieldColumns", "").split(",")]
    return Parsing(Mode(mode), corrupt, frozenset(filter(None, names)))


def _offsets(options: Mapping[str, str], name: str) -> Offsets | None:
    text = options.get(name)
    if text is None:
        return None
    if text in ("earliest", "latest"):
        return text  # type: ignore[return-value]  # it is one of the two
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        found = None
    is_right = isinstance(found, dict) and all(
        isinstance(value, int) and not isinstance(value, bool) and value >= 0
        for value in found.values()
    )
    if not is_right:
        raise BadOption(
            f"{name} {shortened(text)} is not 'earliest', 'latest', or positions such as"
            ' {"london": 4711}'
        )
    return {str(node): int(position) for node, position in found.items()}


def _timestamp(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadOption(f"startingTimestamp {shortened(text)} is not an ISO 8601 time") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1_000_000) * 1000


def _positive(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise BadOption(f"{name} is {shortened(text)}; it must be a whole number of at least 1")
    return int(text)


def _wait_s(options: Mapping[str, str]) -> float:
    return float(_positive(options, "waitSeconds") or WAIT_S)


def _is_true(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise BadOption(f"{name} is {shortened(text)}; it must be true or false")
    return text == "true"
