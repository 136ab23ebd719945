import contextlib
import os
import select
from pathlib import Path

import pytest

from weft.cli.shell_command import run_shell
from weft.errors import ResponderGone, TimedOut


def test_bytes_go_in_and_bytes_come_out() -> None:
    assert run_shell("tr a-z A-Z", b"hello\xff", 10, {}) == b"HELLO\xff"


def test_variables_are_seen_by_the_command() -> None:
    assert run_shell('printf %s "$WEFT_SUBJECT"', b"", 10, {"WEFT_SUBJECT": "a.b"}) == b"a.b"


def test_a_command_that_does_not_read_is_no_error() -> None:
    assert run_shell("echo done", b"x" * 1_000_000, 10, {}) == b"done\n"


def test_a_command_that_fails_is_an_error_with_its_code() -> None:
    with pytest.raises(ResponderGone, match="ended with 3"):
        run_shell("exit 3", b"", 10, {})


def test_a_command_that_takes_too_long_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    written = tmp_path / "pid"
    with pytest.raises(TimedOut, match=r"longer than 0\.2 s"):
        run_shell(f"sleep 1000 & echo $! > {written}; wait", b"", 0.2, {})
    child = int(written.read_text())
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(child)
        # Readable once it has ended.
        assert select.select([descriptor], [], [], 20)[0]
        os.close(descriptor)
