"""The journals of all gateways of a run, compared by the Spark job that comes with Weft.

It knows nothing of gaps that were announced, nor of when a gateway was killed: what was lost on the
way is found again, and what was said while a gateway was down counts as lost there. What it must
not find is a message that came twice, or out of order.
"""

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from tools.chaos.gateways import NAME, Failed

from weft.journal.segment.file_names import FOLDER

_RUN = ("-m", "weft.cli", "pipeline", "run", "audit", "--json", "--path")
# That there are no faults, and that there are some.
_STATUSES = (0, 1)
_NEVER = ("doubled", "misordered")


class Audit(NamedTuple):
    """How many messages it found at gateways that were killed, and at others, by kind."""

    at_killed: Counter[str]
    elsewhere: Counter[str]

    @property
    def is_right(self) -> bool:
        """Say if nothing came twice or out of order."""
        return not any(self.at_killed[kind] or self.elsewhere[kind] for kind in _NEVER)

    def lines(self) -> list[str]:
        """What it found, for people."""
        return [
            f"audit by Spark, at gateways that were killed: {_said(self.at_killed)}",
            f"audit by Spark, at all others: {_said(self.elsewhere)}",
        ]


def audited(folder: Path, killed: Collection[str]) -> Audit:
    """What the job finds in the journals of all gateways whose data is below a folder.

    Raises:
        Failed: it cannot be run.
    """
    merged = folder / "audit"
    for gateway in sorted(folder.glob(f"{NAME}*")):
        # Each file has the name of its gateway: they go together in one folder.
        shutil.copytree(gateway / "data" / FOLDER, merged / FOLDER, dirs_exist_ok=True)
    done = subprocess.run(
        (sys.executable, *_RUN, str(merged)), check=False, capture_output=True, text=True
    )
    rows = done.stdout.splitlines()
    if done.returncode not in _STATUSES or (done.returncode and not rows):
        raise Failed(f"the job ended with status {done.returncode}: {done.stderr[-2000:]}")
    return counted([json.loads(row) for row in rows], killed)


def counted(rows: list[dict[str, Any]], killed: Collection[str]) -> Audit:
    """The rows of the job, added up."""
    audit = Audit(Counter(), Counter())
    for row in rows:
        counts = audit.at_killed if row["node"] in killed else audit.elsewhere
        counts[row["kind"]] += row["count"]
    return audit


def _said(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} × {kind}" for kind, count in counts.items()) or "nothing"
