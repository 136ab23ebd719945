"""Import Weft's modules from their .py files if WEFT_PURE=1 is in the environment.

Python prefers an extension module to the source beside it. This finder considers only sources, for
every package of Weft, so that no compiled module is mixed in.
"""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import ModuleType

IS_ASKED_FOR = os.environ.get("WEFT_PURE", "") not in {"", "0"}


class SourceFinder:
    """Finds the .py file of a Weft module, never its extension module."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a Weft module; None leaves a module to the next finder."""
        if path is None or not name.startswith("weft."):
            return None
        for folder in path:
            spec = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(name)
            if spec is not None:
                return spec
        return None


if IS_ASKED_FOR and SourceFinder not in sys.meta_path:
    sys.meta_path.insert(0, SourceFinder)
