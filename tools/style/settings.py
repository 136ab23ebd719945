"""Settings of the check: the table `[tool.weft-style]` of pyproject.toml."""

import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

_TABLE = "weft-style"
_KEYS = ("finished", "errors")


class BadSettings(Exception):
    """The table has an unknown key, rule or path."""


class Settings(NamedTuple):
    """Path prefixes without tolerance for prose findings, and rules that are errors everywhere."""

    finished: tuple[str, ...] = ()
    errors: frozenset[str] = frozenset()


def load(root: Path, rules: Collection[str]) -> Settings:
    """Read the settings of the project at `root`.

    Raises:
        BadSettings: Unknown key or rule, or a finished path that does not exist.
    """
    page = root / "pyproject.toml"
    tables = tomllib.loads(page.read_text(encoding="utf-8")) if page.exists() else {}
    table = tables.get("tool", {}).get(_TABLE, {})
    for key, value in table.items():
        if key not in _KEYS:
            raise BadSettings(f"unknown key {key!r} in [tool.{_TABLE}], not one of {_KEYS}")
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise BadSettings(f"{key} in [tool.{_TABLE}] is not a list of strings")
    finished = tuple(each.rstrip("/") for each in table.get("finished", []))
    for path in finished:
        if not (root / path).exists():
            raise BadSettings(f"finished path {path!r} in [tool.{_TABLE}] does not exist")
    errors = frozenset(table.get("errors", []))
    if unknown := sorted(errors.difference(rules)):
        raise BadSettings(f"unknown rule {unknown[0]!r} in [tool.{_TABLE}]")
    return Settings(finished, errors)
