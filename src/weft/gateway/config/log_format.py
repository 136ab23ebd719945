"""Log lines for people and for machines; each names the gateway, service or peer it is about.

Whoever logs passes those names as `extra`; a process adds the ones that hold for all it says.
"""

import logging
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import msgspec

from weft.gateway.config.settings import Log

NAMES = ("gateway", "service", "peer")
# A traceback is some kilobytes.
TRACE_EVERY_S = 1.0


def configure(log: Log, **names: str) -> None:
    """Send what this process logs to standard error, in Weft's form; again, to change how.

    For processes that are all Weft's: a program that holds a gateway has logging of its own.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(names) if log.format == "json" else TextLines(names))
    handler.addFilter(TraceLimit())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("weft").setLevel(log.level.upper())


class TraceLimit(logging.Filter):
    """Lets one traceback a second pass from each line of code that logs some.

    A fault that strangers can cause at will must not fill a disk, nor cost more than their bytes.
    """

    def __init__(self) -> None:
        super().__init__()
        # Both by place in the code, so there are few.
        self._quiet_until: dict[tuple[str, int], float] = {}
        self._held: Counter[tuple[str, int]] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is logged; the next of its place counts those that are not."""
        if not record.exc_info:
            return True
        place = record.pathname, record.lineno
        now = time.monotonic()
        if now < self._quiet_until.get(place, 0.0):
            self._held[place] += 1
            return False
        self._quiet_until[place] = now + TRACE_EVERY_S
        held = self._held.pop(place, 0)
        if held:
            record.msg = f"{record.getMessage()} ({held} others since the last such line)"
            record.args = ()
        return True


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
