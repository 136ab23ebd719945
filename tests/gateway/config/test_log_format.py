import json
import logging
import subprocess
import sys
from datetime import datetime

import pytest

from weft.gateway.config import log_format
from weft.gateway.config.log_format import JsonLines, Lines, TextLines

PROGRAM = """
import logging
from weft.gateway.config import log_format
from weft.gateway.config.settings import Log
log = logging.getLogger("weft.gateway.front.front")
log_format.configure(Log(level="info"), gateway="london")
log.debug("not shown")
log.info("shown %s", 1, extra={"peer": "127.0.0.1:9"})
log_format.configure(Log(level="debug", format="json"), gateway="london", service="orders")
log.debug("shown now")
logging.getLogger("asyncio").warning("of another library")
"""


def record(text: str, **names: str) -> logging.LogRecord:
    made = logging.LogRecord("weft.x", logging.INFO, "x.py", 1, text, (), None)
    vars(made).update(names)
    return made


def test_a_line_of_text_names_whom_it_is_about() -> None:
    line = TextLines({"gateway": "london"}).format(record("up", peer="127.0.0.1:9"))
    moment, rest = line.split(" ", 1)
    assert rest == "INFO    gateway=london peer=127.0.0.1:9 up"
    assert moment.endswith("Z")
    assert datetime.fromisoformat(moment).tzinfo is not None


def test_a_record_s_own_name_comes_before_the_process_s() -> None:
    line = TextLines({"gateway": "london", "service": "a"}).format(record("up", service="b"))
    assert "service=b" in line


def test_a_line_of_json_has_the_same_in_fields() -> None:
    line = json.loads(JsonLines({"gateway": "london"}).format(record("up", service="orders")))
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "logger": "weft.x",
        "gateway": "london",
        "service": "orders",
        "text": "up",
    }


def test_text_cannot_pass_for_another_line() -> None:
    line = TextLines({}).format(record("a\nb\x1b[2J\u2028c"))
    assert line.endswith(r"a\nb\x1b[2J\u2028c")


@pytest.mark.parametrize("form", [TextLines, JsonLines])
def test_an_unexpected_error_is_shown_with_its_trace(form: type[Lines]) -> None:
    made = record("failed")
    error = RuntimeError("why")
    made.exc_info = (RuntimeError, error, None)
    assert "RuntimeError: why" in form({}).format(made)


def test_a_process_logs_to_standard_error_and_can_change_how() -> None:
    done = subprocess.run(  # noqa: S603  # ours
        [sys.executable, "-c", PROGRAM], check=True, timeout=30, capture_output=True, text=True
    )
    first, second, third = done.stderr.splitlines()
    assert first.endswith("INFO    gateway=london peer=127.0.0.1:9 shown 1")
    assert json.loads(second)["service"] == "orders"
    assert json.loads(third)["text"] == "of another library"
    assert done.stdout == ""


def test_a_flood_of_tracebacks_is_one_a_second_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("weft.gateway.config.log_format.time.monotonic", lambda: now)
    limit = log_format.TraceLimit()
    heard: list[str] = []

    def fail(place: int = 1, *, has_trace: bool = True) -> None:
        trace = (ValueError, ValueError("no"), None) if has_trace else None
        record = logging.LogRecord("weft", 40, "a.py", place, "failed %s", ("again",), trace)
        if limit.filter(record):
            heard.append(record.getMessage())

    for _ in range(600):
        fail()
    assert heard == ["failed again"]
    # Other places, and lines without a traceback, are not held back.
    fail(2)
    fail(has_trace=False)
    assert heard == ["failed again"] * 3
    now += log_format.TRACE_EVERY_S
    fail()
    assert heard[3:] == ["failed again (599 others since the last such line)"]
