import os
import subprocess
import sys
from collections.abc import Callable

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_its_script(run_here: Run, shell: str) -> None:
    done = run_here("completion", shell)
    assert done.returncode == 0
    assert "_WEFT_COMPLETE" in done.stdout


def test_an_unknown_shell_is_refused(run_here: Run) -> None:
    done = run_here("completion", "ksh")
    assert done.returncode == 2
    assert "'ksh' is not one of 'bash', 'zsh', 'fish'" in done.stderr


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("weft st", {"status"}),
        ("weft sub --pol", {"--policy"}),
        ("weft sub --policy drop_", {"drop_new", "drop_old"}),
    ],
)
def test_words_are_completed(words: str, found: set[str]) -> None:
    environment = {
        **os.environ,
        "_WEFT_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "weft.cli"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert {line.partition(",")[2] for line in done.stdout.splitlines()} == found
