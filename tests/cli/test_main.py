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
    assert done.stderr == ('weft: the command line needs more packages: pip install "weft[cli]"\n')


def test_another_missing_module_is_not_hidden() -> None:
    program = "import sys; sys.modules['uvloop'] = None\nimport weft.cli.main\n"
    done = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "ModuleNotFoundError" in done.stderr


def test_the_exit_code_is_that_of_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "weft.cli", "nonsense"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "weft: no such command 'nonsense'; see 'weft --help'\n"
