import json
import subprocess
from collections.abc import Callable
from importlib import metadata

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_the_version_is_that_of_the_package(run_here: Run) -> None:
    version = metadata.version("weft-mesh")
    assert run_here("version").stdout.startswith(f"weft {version}, ")
    assert json.loads(run_here("version", "--json").stdout)["version"] == version
    assert run_here("--version").stdout == f"weft {version}\n"
