"""The name of the installed package, which is not the name that is imported, and its version."""

from importlib import metadata

# `weft` on the package index belongs to another project.
NAME = "weft-mesh"


def installed_version() -> str:
    """Return the version of the installed distribution."""
    return metadata.version(NAME)
