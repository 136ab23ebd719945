"""Refuses to test a compiled core that is older than its sources."""

from pathlib import Path

import pytest

from weft import interpreted

SOURCE = Path(interpreted.__file__).parent


def stale_extensions() -> list[str]:
    """The extension modules that were built before their source was last changed."""
    return [
        extension.name
        for extension in sorted(SOURCE.rglob("*.so"))
        for source in extension.parent.glob(extension.name.split(".")[0] + ".p*")
        if source.suffix in {".py", ".pxd"} and source.stat().st_mtime > extension.stat().st_mtime
    ]


def pytest_configure() -> None:
    stale = [] if interpreted.IS_ASKED_FOR else stale_extensions()
    if stale:
        raise pytest.UsageError(f"built before the last edit: {', '.join(stale)}; run 'make build'")
