"""The journals of all gateways of a run, compared by the Spark job that comes with Weft."""

import shutil
import subprocess
import sys
from pathlib import Path

from tools.chaos.gateways import NAME

from weft.journal.places import FOLDER

# Of what it says so many lines are shown.
SHOWN_MAX = 20
_RUN = ("-m", "weft.cli", "pipeline", "run", "audit", "--json", "--path")


def audited(folder: Path) -> list[str]:
    """What the job finds in the journals of all gateways whose data is below a folder."""
    merged = folder / "audit"
    for gateway in sorted(folder.glob(f"{NAME}*")):
        # Each file has the name of its gateway: they go together in one folder.
        shutil.copytree(gateway / "data" / FOLDER, merged / FOLDER, dirs_exist_ok=True)
    done = subprocess.run(
        (sys.executable, *_RUN, str(merged)), check=False, capture_output=True, text=True
    )
    rows = done.stdout.splitlines()
    said = rows or (done.stderr.splitlines()[-SHOWN_MAX:] if done.returncode else [])
    head = f"audit by Spark: {len(rows)} rows, status {done.returncode}"
    return [head, *(f"  {line}" for line in said[:SHOWN_MAX])]
