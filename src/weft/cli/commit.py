"""Commit of the running code, to reproduce simulation runs."""

import subprocess
from pathlib import Path

from weft.distribution import installed_version


def commit() -> str:
    """Return the commit of a checkout, else the version."""
    here = str(Path(__file__).resolve())
    folder = str(Path(here).parent)
    try:
        # Only if this file is tracked: the package may be in another checkout.
        subprocess.run(  # noqa: S603  # fixed words
            ["git", "-C", folder, "ls-files", "--error-unmatch", here],  # noqa: S607  # as installed
            capture_output=True,
            check=True,
        )
        done = subprocess.run(  # noqa: S603  # fixed words
            ["git", "-C", folder, "describe", "--always", "--dirty"],  # noqa: S607  # as installed
            capture_output=True,
            check=True,
            text=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return installed_version()
    return done.stdout.strip()
