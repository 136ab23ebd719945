"""The journals of all gateways of a run, compared by the Spark job that comes with Weft."""

import subprocess
import sys
from pathlib import Path

from tools.chaos.gateways import NAME, SERVICE

from weft.journal.places import FOLDER

_RUN = ("-m", "weft.cli", "pipeline", "run", "audit", "--json", "--path")


def audited(folder: Path) -> list[str]:
    """What the job finds in the journals of all gateways whose data is below a folder."""
    merged = folder / "audit"
    journals = merged / FOLDER / SERVICE
    journals.mkdir(parents=True)
    for gateway in sorted(folder.glob(f"{NAME}*")):
        kept = gateway / "data" / FOLDER / SERVICE / gateway.name
        (journals / gateway.name).symlink_to(kept, target_is_directory=True)
    done = subprocess.run(
        (sys.executable, *_RUN, str(merged)), check=False, capture_output=True, text=True
    )
    said = [*done.stdout.splitlines(), *([] if done.returncode in (0, 1) else [done.stderr])]
    return [f"audit by Spark: status {done.returncode}, {len(said)} rows", *said[:20]]
