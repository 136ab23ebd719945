"""Jobs of a user: files in a folder, each a job with the name of its file.

A `.py` file has a function of the same name, from a table of messages to a table: its docstring is
the summary, its keyword-only parameters are those of the job. `COLUMNS` may give another schema
than that of all messages, `OUTPUT_MODE` allows streaming. A `.sql` file is one query over services
as tables; its first line, a comment, is the summary, and `:name` in it a parameter. A line
`-- fields: value double, unit string` makes columns of message fields.
"""

import importlib.util
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import get_args

from pyspark import cloudpickle

from weft.errors import BadOption
from weft.pipeline.job import Job, OutputMode, Value, nearest
from weft.spark.columns import STANDARD

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Not `::`, which casts, and not in quotes.
_FIELDS = re.compile(r"^--\s*fields:[ \t]*(?P<columns>[^\n]*\S)\s*$", re.MULTILINE)
_PARAMETER = re.compile(r"'[^']*'|--[^\n]*|(?<!:):([A-Za-z_][A-Za-z0-9_]*)")


@dataclass(frozen=True, slots=True)
class SqlJob:
    """Job written in SQL."""

    name: str
    text: str

    @property
    def summary(self) -> str:
        """Text of its first line, if that is a comment."""
        first = self.text.lstrip().partition("\n")[0]
        is_summary = first.startswith("--") and not _FIELDS.match(first)
        return first.removeprefix("--").strip() if is_summary else ""

    @property
    def fields(self) -> str:
        """Columns that are message fields, such as "value double"; or empty."""
        return ", ".join(found["columns"].rstrip(",") for found in _FIELDS.finditer(self.text))

    @property
    def parameters(self) -> dict[str, Value]:
        """Names of its parameters; they have no defaults."""
        found = (match[1] for match in _PARAMETER.finditer(self.text))
        return {name: "" for name in found if name}

    def values(self, given: Mapping[str, str]) -> dict[str, Value]:
        """Return the given parameters, converted to numbers where possible.

        Raises:
            BadOption: Unknown or missing parameter.
        """
        known = self.parameters
        for name in given:
            if name not in known:
                raise BadOption(f"{self.name} has no parameter {name!r}{nearest(name, known)}")
        lacking = [name for name in known if name not in given]
        if lacking:
            raise BadOption(f"{self.name} needs {', '.join(lacking)}: --set {lacking[0]}=…")
        return {name: _value(text) for name, text in given.items()}


def files_in(folder: Path) -> dict[str, Path]:
    """Return the files that are jobs, by name."""
    if not folder.is_dir():
        return {}
    found = sorted(each for each in folder.iterdir() if each.suffix in (".py", ".sql"))
    return {each.stem: each for each in found if _NAME.fullmatch(each.stem)}


def load(path: Path) -> Job | SqlJob:
    """Return the job in a file.

    Raises:
        BadOption: The file has no valid job.
    """
    if path.suffix == ".sql":
        return SqlJob(path.stem, path.read_text(encoding="utf-8"))
    module = _module(path)
    function = getattr(module, path.stem, None)
    if not callable(function):
        raise BadOption(f"{path} has no function {path.stem}, which is the job")
    mode = getattr(module, "OUTPUT_MODE", None)
    if mode is not None and mode not in get_args(OutputMode):
        raise BadOption(
            f"{path}: OUTPUT_MODE is {mode!r}, not one of {', '.join(get_args(OutputMode))}"
        )
    return Job(function, getattr(module, "COLUMNS", STANDARD), output_mode=mode)


def _module(path: Path) -> ModuleType:
    name = f"weft_own_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadOption(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadOption(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    # Spark's workers cannot import the module: pickle its functions by value.
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # it has none
    return module


def _value(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
