"""Which PySpark there must be; it is looked at before anything of it is imported."""

import re
from importlib.metadata import PackageNotFoundError, version

from weft.errors import BadOption

LEAST = (4, 2)
_NUMBERS = re.compile(r"(\d+)\.(\d+)")
# A cluster may have the client of Spark Connect alone.
_PACKAGES = ("pyspark", "pyspark-client", "pyspark-connect")


def check_pyspark() -> None:
    """See that PySpark is there, and new enough for sources in Python that stream.

    Raises:
        BadOption: it is missing or too old.
    """
    found = [each for each in map(_version, _PACKAGES) if each is not None]
    needed = ".".join(map(str, LEAST))
    install = 'pip install "weft-mesh[spark]"'
    if not found:
        raise BadOption(f"this needs PySpark {needed} or later: {install}")
    numbers = _NUMBERS.match(found[0])
    # A version that cannot be parsed is a custom build: its owner knows what it is.
    if numbers and (int(numbers[1]), int(numbers[2])) < LEAST:
        raise BadOption(f"PySpark {found[0]} is too old: {needed} or later is needed: {install}")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
