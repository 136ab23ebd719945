"""A finding, and the rule that it breaks."""

from typing import NamedTuple


class Rule(NamedTuple):
    """A check by its name on the command line, and the correction that it asks for."""

    name: str
    advice: str


class Finding(NamedTuple):
    """One place that breaks a rule; the path is relative to the root of the project."""

    path: str
    line: int
    rule: str
    text: str


def is_below(path: str, prefixes: tuple[str, ...]) -> bool:
    """Return whether a path is one of the prefixes or lies in a folder that is one."""
    return any(path == prefix or path.startswith(f"{prefix}/") for prefix in prefixes)
