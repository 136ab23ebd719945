"""Log lines for people and for machines; each names the gateway, service or peer it is about.

Whoever logs passes those names as `extra`; a process adds the ones that hold for all it says.
"""

import logging
import sys
from datetime import UTC, datetime
from typing import Any

import msgspec

from weft.gateway.settings import Log

NAMES = ("gateway", "service", "peer")


def configure(log: Log, **names: str) -> None:
    """Send what this process logs to standard error, in Weft's form; again, to change how.

    For processes that are all Weft's: a program that holds a gateway has logging of its own.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(names) if log.format == "json" else TextLines(names))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("weft").setLevel(log.level.upper())


class Lines(logging.Formatter):
    """What both forms share: the time, and the names that a line is about."""

    def __init__(self, names: dict[str, str]) -> None:
        super().__init__()
        self._names = names

    def named(self, record: logging.LogRecord) -> dict[str, str]:
        """Whom the record is about: its own names, then those of the process."""
        found = {name: getattr(record, name, "") or self._names.get(name, "") for name in NAMES}
        return {name: value for name, value in found.items() if value}


class TextLines(Lines):
    """For people: time, level, names, text."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and a traceback after it if there is one."""
        names = [f"{name}={value}" for name, value in self.named(record).items()]
        text = " ".join([*names, _one_line(record.getMessage())])
        line = f"{_moment(record)} {record.levelname:<7} {text}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonLines(Lines):
    """For machines: an object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever the text holds."""
        line: dict[str, Any] = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            **self.named(record),
            "text": record.getMessage(),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def _moment(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _one_line(text: str) -> str:
    """The text without what could pass for another line, or move a terminal's cursor."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
