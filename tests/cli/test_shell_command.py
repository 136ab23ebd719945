import contextlib
import os
import select
from pathlib import Path

import pytest

from weft.cli.shell_command import WRITTEN_MAX_BYTES, run_shell
from weft.errors import BadField, ResponderGone, TimedOut


def test_bytes_go_in_and_bytes_come_out() -> None:
    assert run_shell("tr a-z A-Z", b"hello\xff", 10, {}) == b"HELLO\xff"


def test_variables_are_seen_by_the_command() -> None:
    assert run_shell('printf %s "$WEFT_SUBJECT"', b"", 10, {"WEFT_SUBJECT": "a.b"}) == b"a.b"


def test_a_command_that_does_not_read_is_no_error() -> None:
    assert run_shell("echo done", b"x" * 1_000_000, 10, {}) == b"done\n"


def test_a_command_that_fails_is_an_error_with_its_code() -> None:
    with pytest.raises(ResponderGone, match="ended with 3"):
        run_shell("exit 3", b"", 10, {})


def test_a_command_may_read_and_write_much_at_once() -> None:
    given = os.urandom(3_000_000)
    assert run_shell("cat", given, 30, {}) == given
    assert run_shell(f"head -c {WRITTEN_MAX_BYTES} /dev/zero", b"", 30, {}) == bytes(
        WRITTEN_MAX_BYTES
    )


@pytest.mark.parametrize("timeout_s", [10, 1e300])
def test_a_command_that_closes_its_output_first_is_waited_for(timeout_s: float) -> None:
    with pytest.raises(ResponderGone, match="ended with 4"):
        run_shell("exec >&-; cat; exit 4", b"x" * 1_000_000, timeout_s, {})


def test_a_command_that_takes_too_long_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    written = tmp_path / "pid"
    with pytest.raises(TimedOut, match=r"longer than 0\.2 s"):
        run_shell(f"sleep 1000 & echo $! > {written}; wait", b"", 0.2, {})
    assert_ended(int(written.read_text()))


def test_a_command_that_writes_for_ever_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    written = tmp_path / "pid"
    with pytest.raises(BadField, match=rf"bytes or more, over the limit of {WRITTEN_MAX_BYTES}"):
        run_shell(f"sleep 1000 & echo $! > {written}; exec yes", b"", 1000, {})
    assert_ended(int(written.read_text()))


def assert_ended(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(process)
        # Readable once it has ended.
        assert select.select([descriptor], [], [], 20)[0]
        os.close(descriptor)


def test_a_key_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_KEY", "wk_secret")
    monkeypatch.setenv("WEFT_SERVICE", "market")
    assert run_shell('printf %s "$WEFT_KEY$WEFT_SERVICE"', b"", 10, {}) == b"market"
