"""Log formatters, text and JSON; each line names the gateway, service or peer it concerns.

Callers pass these names as `extra`; a process adds the names that are the same for all its lines.
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
    """Log to standard error in Weft's format; call again to change the settings.

    For Weft's own processes only: a program that embeds a gateway configures its own logging.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(names) if log.format == "json" else TextLines(names))
    handler.addFilter(TraceLimit())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("weft").setLevel(log.level.upper())


class TraceLimit(logging.Filter):
    """Pass one traceback per second from each line of code that logs tracebacks.

    Remote peers may trigger an error at will; this bounds the disk space and time that it costs.
    """

    def __init__(self) -> None:
        super().__init__()
        # Both by location in the code, which bounds their size.
        self._quiet_until: dict[tuple[str, int], float] = {}
        self._held: Counter[tuple[str, int]] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a record; the next one of its location reports the skipped."""
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
    """Base of both formatters: the time, and the names that a line concerns."""

    def __init__(self, names: dict[str, str]) -> None:
        super().__init__()
        self._names = names

    def named(self, record: logging.LogRecord) -> dict[str, str]:
        """Return the names of a record, completed with those of the process."""
        found = {name: getattr(record, name, "") or self._names.get(name, "") for name in NAMES}
        return {name: value for name, value in found.items() if value}


class TextLines(Lines):
    """Text format: time, level, names, text."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, followed by a traceback if there is one."""
        names = [f"{name}={value}" for name, value in self.named(record).items()]
        text = " ".join([*names, _one_line(record.getMessage())])
        line = f"{_moment(record)} {record.levelname:<7} {text}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonLines(Lines):
    """JSON format: one object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, without line breaks whatever the text contains."""
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
    """Return the text with non-printable characters escaped: no line breaks or cursor movement."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
