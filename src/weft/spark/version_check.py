"""Required version of PySpark, checked before it is imported."""

import re
from importlib.metadata import PackageNotFoundError, version

from weft.errors import BadOption

LEAST = (4, 2)
_NUMBERS = re.compile(r"(\d+)\.(\d+)")
# A cluster may have the client of Spark Connect alone.
_PACKAGES = ("pyspark", "pyspark-client", "pyspark-connect")


def check_pyspark() -> None:
    """Check that PySpark is installed, and new enough for streaming sources in Python.

    Raises:
        BadOption: It is missing or too old.
    """
    found = [each for each in map(_version, _PACKAGES) if each is not None]
    needed = ".".join(map(str, LEAST))
    install = 'pip install "weft-mesh[spark]"'
    if not found:
        raise BadOption(f"this needs PySpark {needed} or later: {install}")
    numbers = _NUMBERS.match(found[0])
    # An unparsable version is a custom build, which is assumed to be new enough.
    if numbers and (int(numbers[1]), int(numbers[2])) < LEAST:
        raise BadOption(f"PySpark {found[0]} is too old: {needed} or later is needed: {install}")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
