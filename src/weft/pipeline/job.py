"""Description of a job: a function from a table to a table, and how to run it.

Name, summary and parameters are those of the function: parameters are keyword-only, and the type of
a default is the type of the parameter.
"""

import difflib
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import DataFrame

from weft.errors import BadOption, shortened

Value = bool | int | float | str
OutputMode = Literal["append", "update", "complete"]


@dataclass(frozen=True, slots=True)
class Job:
    """A job; `columns` is the schema of the messages it needs, with parameters in braces."""

    function: Callable[..., DataFrame]
    columns: str
    # Output mode of a streaming query; None if the job needs the whole table.
    output_mode: OutputMode | None = None
    # It judges whole journals: selected subjects, or an end, would look like a loss.
    needs_all: bool = False
    # Its rows are faults: no rows mean success.
    finds_faults: bool = False
    # Its table has a row per folder of sealed segments, in place of messages.
    reads_folders: bool = False
    # Its rows are messages, each with a subject of its own.
    makes_messages: bool = False

    @property
    def name(self) -> str:
        """Name of the function."""
        return self.function.__name__

    @property
    def summary(self) -> str:
        """First line of the function's docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    @property
    def parameters(self) -> dict[str, Value]:
        """Parameters by name, with their defaults."""
        found = inspect.signature(self.function).parameters.values()
        return {each.name: each.default for each in found if each.kind == each.KEYWORD_ONLY}

    def values(self, given: Mapping[str, str]) -> dict[str, Value]:
        """Return the parameters, with the given texts converted in place of their defaults.

        Raises:
            BadOption: Unknown parameter or invalid value.
        """
        values = self.parameters
        for name, text in given.items():
            if name not in values:
                raise BadOption(f"{self.name} has no parameter {name!r}{nearest(name, values)}")
            values[name] = _typed(name, text, values[name])
        return values

    def columns_for(self, values: Mapping[str, Value]) -> str:
        """Return the schema that the job needs with these values of its parameters.

        Raises:
            BadOption: A value is not valid in the name of a column.
        """
        if any("`" in str(value) for value in values.values()):
            raise BadOption("a parameter of a job cannot hold a backtick")
        return self.columns.format(**values)

    def run(self, table: DataFrame, values: Mapping[str, Value]) -> DataFrame:
        """Return the result for a table.

        Raises:
            BadOption: Invalid value of a parameter.
        """
        return self.function(table, **values)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of an error text for an unknown name: the nearest one, or all of them."""
    names = list(known)
    near = difflib.get_close_matches(name, names, 1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f", only {', '.join(names)}" if names else ": there is none"


def _typed(name: str, text: str, default: Value) -> Value:
    if isinstance(default, str):
        return text
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise BadOption(f"{name} is {shortened(text)}; it must be true or false")
        return text.lower() == "true"
    kind = type(default)
    try:
        value = kind(text)
    except ValueError as error:
        expected = "a whole number" if kind is int else "a number"
        raise BadOption(f"{name} is {shortened(text)}; it must be {expected}") from error
    if not math.isfinite(value):
        raise BadOption(f"{name} is {text}; it must be finite")
    return value
