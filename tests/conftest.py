"""What all tests rely on: a core built from its present sources, and properties without timing."""

from pathlib import Path

import pytest
from hypothesis import settings

from weft import interpreted

# A deadline would assert a time. Interpreted, the same properties get fewer examples: there they
# look for a line that behaves otherwise, and the compiled run has already looked far.
settings.register_profile(
    "weft", deadline=None, max_examples=30 if interpreted.IS_ASKED_FOR else 100
)
settings.load_profile("weft")

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
