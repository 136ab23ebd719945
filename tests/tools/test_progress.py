"""The progress of set-up: what is shown, what is kept, and what a failure prints."""

import subprocess
import sys
from pathlib import Path

import pytest
from tools.progress import Step, Steps

TOOL = Path(__file__).resolve().parents[2] / "tools" / "progress.py"


def run(log: Path, script: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOL), "building", str(log), "--", sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("[ 3/65] Cythonizing src/a.py", Step(3, 65, "Cythonizing src/a.py")),
        ("[65/65] compiling weft.broker.a", Step(65, 65, "compiling weft.broker.a")),
        ("gcc -c a.c", None),
        ("Collecting click==8.5.1", None),
    ],
)
def test_numbered_lines_are_steps(line: str, step: Step | None) -> None:
    assert Steps(0).find(line) == step


def test_packages_are_counted_where_their_number_is_known() -> None:
    steps = Steps(2)
    assert steps.find("Collecting click==8.5.1 (from -r run.txt)") == Step(1, 2, "click")
    assert steps.find("Processing /a/b/h11-0.16.0-py3-none-any.whl") == Step(2, 2, "h11")
    assert steps.find("Collecting one-more") == Step(2, 2, "one")


def test_the_output_is_in_the_log_and_not_on_the_screen(tmp_path: Path) -> None:
    done = run(tmp_path / "made" / "log", "print('[1/1] a module'); print('a detail')")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "== building"
    assert "a detail" not in done.stdout
    assert (tmp_path / "made" / "log").read_text() == "[1/1] a module\na detail\n"


def test_a_failure_prints_the_whole_output_and_has_the_exit_code(tmp_path: Path) -> None:
    done = run(tmp_path / "log", "print('what went wrong'); raise SystemExit(3)")
    assert done.returncode == 3
    assert "== building: failed with exit code 3" in done.stdout
    assert done.stderr == "what went wrong\n"
