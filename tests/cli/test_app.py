import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from weft.cli.app import SUMMARIES, weft

Run = Callable[..., subprocess.CompletedProcess[str]]

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
NAMES = sorted(weft.commands)


def test_there_is_a_command_for_everything() -> None:
    assert list(weft.commands) == [
        *("serve", "keys", "pub", "sub", "req", "reply", "channel", "status", "top", "routes"),
        *("mesh",),
        *("closest", "trace", "admin", "journal", "pipeline", "sql", "bench", "simulate"),
        *("version", "completion"),
    ]


def command_of(name: str) -> click.Command:
    command = weft.get_command(click.Context(weft), name)
    assert command is not None
    return command


@pytest.mark.parametrize("name", NAMES)
def test_the_list_of_commands_says_what_each_says_itself(name: str) -> None:
    summary = SUMMARIES[name]
    assert (command_of(name).help or "").startswith(summary)
    assert len(summary) <= 62  # one line at 80 columns


def test_the_help_imports_no_command() -> None:
    script = """
import sys
from weft.cli.app import run
run(["--help"])
print(sorted(name for name in sys.modules if name.startswith(("weft.client", "weft.gateway"))))
"""
    done = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], *([name, "--help"] for name in NAMES)])
def test_every_command_explains_itself(arguments: list[str]) -> None:
    done = CliRunner().invoke(weft, arguments, prog_name="weft")
    assert done.exit_code == 0
    assert done.output.startswith(
        f"Usage: weft {arguments[0] if len(arguments) > 1 else ''}".strip()
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_command_and_option_is_on_the_page(name: str) -> None:
    assert f"`weft {name}`" in PAGE
    command = command_of(name)
    inner = command.commands.values() if isinstance(command, click.Group) else []
    for parameter in itertools.chain(command.params, *(each.params for each in inner)):
        if isinstance(parameter, click.Option):
            assert any(option in PAGE for option in parameter.opts), parameter.opts
            assert parameter.help, f"{name} {parameter.opts[0]} does not say what it is for"


def test_no_command_at_all_shows_the_help(run_here: Run) -> None:
    done = run_here()
    assert done.returncode == 2
    assert "Usage: weft" in done.stderr


def test_an_unknown_option_is_one_sentence(run_here: Run) -> None:
    done = run_here("pub", "--colour")
    assert done.returncode == 2
    assert done.stderr.startswith("weft: no such option")
    assert done.stderr.endswith("; see 'weft pub --help'\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--help"], ["pub", "--help"], ["--version"], ["version"]])
def test_nobody_who_reads_is_no_fault(arguments: list[str]) -> None:
    done = run_unread(*arguments, unread="stdout")
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["pub", "a..b", "x"]])
def test_nobody_who_reads_of_a_mistake_is_no_fault_either(arguments: list[str]) -> None:
    done = run_unread(*arguments, unread="stderr")
    assert (done.returncode, done.stdout) == (2, b"")


def run_unread(*arguments: str, unread: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command line one of whose streams leads into a pipe that nobody reads."""
    read, write = os.pipe()
    os.close(read)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, unread: write}
    try:
        return subprocess.run(  # noqa: S603  # our own command
            [sys.executable, "-m", "weft.cli", *arguments],
            check=False,
            stdout=streams["stdout"],
            stderr=streams["stderr"],
        )
    finally:
        os.close(write)


def test_a_traceback_is_shown_only_on_demand(
    run_here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Traceback" not in run_here("pub", "a..b", "x", "--gateway", "127.0.0.1:1").stderr
    monkeypatch.setenv("WEFT_DEBUG", "1")
    assert "Traceback" in run_here("pub", "a..b", "x", "--gateway", "127.0.0.1:1").stderr
