"""Name and version of the installed distribution; the name differs from the package's."""

from importlib import metadata

# `weft` on the package index belongs to another project.
NAME = "weft-mesh"


def installed_version() -> str:
    """Return the version of the installed distribution."""
    return metadata.version(NAME)
