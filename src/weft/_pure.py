"""With WEFT_PURE=1 in the environment, weft's modules are imported from their .py files.

Python prefers an extension module to the source beside it. This finder looks for sources only, for
every package of weft, so no compiled leftover can be mixed in.
"""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import ModuleType

IS_ASKED_FOR = os.environ.get("WEFT_PURE", "") not in {"", "0"}


class SourceFinder:
    """Finds the .py file of a weft module and never its extension."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answer the import system; None leaves the module to the finders after this one."""
        if path is None or not name.startswith("weft."):
            return None
        for folder in path:
            spec = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(name)
            if spec is not None:
                return spec
        return None


if IS_ASKED_FOR and SourceFinder not in sys.meta_path:
    sys.meta_path.insert(0, SourceFinder)
