import os
import signal
import subprocess
import sys

import pytest


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_without_its_packages_it_says_what_to_install(missing: str) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None\nfrom weft.cli.main import main\nmain()\n"
    )
    done = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        'weft: the command line needs more packages: pip install "weft-mesh[cli]"\n'
    )


def test_another_missing_module_is_not_hidden() -> None:
    program = (
        "import sys; sys.modules['weft.cli.errors'] = None\n"
        "from weft.cli.main import main\nmain()\n"
    )
    done = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "ModuleNotFoundError" in done.stderr


INTERRUPTED = """
import os, signal, sys
from importlib.abc import MetaPathFinder

awaited = sys.argv.pop(1)

class Interrupt(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == awaited:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from weft.cli.main import main
main()
"""


@pytest.mark.parametrize(
    "module",
    [
        "weft.cli.app",
        "click",
        "rich.console",
        "weft.cli.commands.pub",
        "weft.client.sync.connection",
    ],
)
def test_an_interrupt_while_modules_are_imported_is_no_traceback(module: str) -> None:
    done = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-c", INTERRUPTED, module, "pub", "a.b", "x"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode in (130, -signal.SIGINT)
    assert "Traceback" not in done.stderr


def test_the_exit_code_is_that_of_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "weft.cli", "nonsense"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "weft: no such command 'nonsense'; see 'weft --help'\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("arguments", [["pub", "a.b", "x"], ["status"]])
def test_a_closed_stream_is_as_good_as_an_empty_one(
    gateway: str, arguments: list[str], closed: str
) -> None:
    done = started_with(closed, *arguments, gateway=gateway)
    assert done.returncode == 0
    assert done.stderr == ""


def test_news_never_goes_to_the_results() -> None:
    done = started_with("2>&-", "nonsense")
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("text", [[], ["-"]])
def test_without_an_input_there_are_no_lines_to_publish(gateway: str, text: list[str]) -> None:
    done = started_with("<&-", "pub", "a.b", *text, gateway=gateway)
    assert done.returncode == 2
    assert "nothing to publish" in done.stderr


def started_with(
    closed: str, *arguments: str, gateway: str = ""
) -> subprocess.CompletedProcess[str]:
    """A command line that a shell started with some of its streams closed."""
    command = [sys.executable, "-m", "weft.cli", *arguments]
    return subprocess.run(  # noqa: S603  # our own command
        ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "WEFT_GATEWAY": gateway},
    )
