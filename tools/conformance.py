"""Runs the Autobahn suite for WebSockets against a gateway: `make conformance`.

The suite is written for Python 2.7, which must be there as PYTHON2 or on the path. It talks to the
echo that `web.debug_echo` opens, so everything below the dialects is tried.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

FOLDER = Path("build/autobahn")
SUITE = "autobahntestsuite==0.8.2"
# Of the hundreds of cases on compression, each with a thousand messages, a few.
CASES = (
    *("1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "9.*", "10.*"),
    *("12.1.1", "12.2.1", "13.1.1", "13.2.1", "13.3.1", "13.4.1"),
)
# The suite wants what is no UTF-8 found before its frame has come to an end.
KNOWN = {"6.4.3": "NON-STRICT", "6.4.4": "NON-STRICT"}

_SETTINGS = """
listen = "127.0.0.1:0"
services = ["default"]
log.level = "warning"
web.debug_echo = true
web.deflate = true
limits.body_bytes = 16777216
"""
_RUN = "from autobahntestsuite.wstest import run; run()"


def main() -> int:
    """Run the suite; 0 if it found nothing but what is known."""
    python = os.environ.get("PYTHON2") or shutil.which("python2.7")
    # What is on the path may only stand in for one that is not chosen.
    if python is None or subprocess.run((python, "-c", ""), check=False).returncode:
        print("weft: the Autobahn suite needs Python 2.7: set PYTHON2", file=sys.stderr)
        return 1
    packages = _installed(python)
    (FOLDER / "weft.toml").write_text(_SETTINGS)
    serve = (sys.executable, "-m", "weft.cli", "serve", "--config", str(FOLDER / "weft.toml"))
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as gateway:
        try:
            said = gateway.stdout.readline() if gateway.stdout is not None else ""
            address = said.partition(" is ready on ")[2].partition(";")[0]
            server = {"agent": "weft", "url": f"ws://{address}/default/_echo"}
            plan = {"outdir": str(FOLDER / "reports"), "servers": [server], "cases": CASES}
            (FOLDER / "plan.json").write_text(json.dumps(plan | {"exclude-cases": []}))
            asked = ("-m", "fuzzingclient", "-s", str(FOLDER / "plan.json"))
            environment = os.environ | {"PYTHONPATH": str(packages)}
            subprocess.run((python, "-c", _RUN, *asked), env=environment, check=True)
        finally:
            gateway.terminate()
    return _told(json.loads((FOLDER / "reports/index.json").read_text())["weft"])


def _installed(python: str) -> Path:
    """The packages of the suite, installed apart from everything else."""
    packages = FOLDER / "packages"
    if not packages.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        command = (python, "-m", "pip", "install", "--quiet", "--target", str(packages), SUITE)
        subprocess.run(command, check=True)
        # A package of several distributions is one only where all of them are installed.
        (packages / "zope/__init__.py").touch()
    return packages


def _told(results: dict[str, dict[str, str]]) -> int:
    """Print what the suite found; 1 if there is anything new."""
    counts = Counter(each["behavior"] for each in results.values())
    print(f"{len(results)} cases:", ", ".join(f"{n} {name}" for name, n in counts.items()))
    fine = {"OK", "INFORMATIONAL"}
    found = {case: each["behavior"] for case, each in results.items()}
    new = {case: how for case, how in found.items() if how not in fine | {KNOWN.get(case)}}
    for case, how in new.items():
        print(f"  {case} {how}")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
