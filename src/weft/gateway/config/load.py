"""Load settings from a TOML file and command-line options; errors name the key."""

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec

from weft.errors import BadOption, shortened
from weft.gateway.config.settings import Settings

# Larger than any realistic settings file.
_FILE_MAX_BYTES = 1 << 20
# Where msgspec names the key in an error: "… - at `$.limits.ping_s`".
_PLACE = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<key>[^`]*)`)?$", re.DOTALL)
# Placeholder for the names that operators give to tables.
_NAME = "NAME"


def load(path: Path | None = None, options: Mapping[str, object] | None = None) -> Settings:
    """Return the settings of a file, if given, overridden by options: `{"log.level": "debug"}`.

    Raises:
        BadOption: Unreadable file, unknown key or invalid value.
    """
    if path is None:
        return _made(_with({}, options or {}))
    tree = _read(path)
    try:
        return _made(_with(tree, options or {}))
    except BadOption as error:
        # The error names the file only if the file is invalid without the options.
        try:
            _made(tree)
        except BadOption as alone:
            raise BadOption(f"{path}: {alone}") from error
        raise


def all_keys() -> list[str]:
    """Return every dotted key in the order of docs/operations.md.

    `NAME` stands for the name of a table that the operator chooses, as in `[formats.mine]`.
    """
    return list(_keys_of(Settings, ""))


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(_FILE_MAX_BYTES + 1)
    except OSError as error:
        raise BadOption(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > _FILE_MAX_BYTES:
        raise BadOption(f"{path} is over the limit of {_FILE_MAX_BYTES} bytes")
    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadOption(f"{path} is not TOML: {error}") from error


def _with(tree: Mapping[str, Any], options: Mapping[str, object]) -> dict[str, Any]:
    """Return a copy of the tree with the options applied."""
    merged = {name: dict(each) if isinstance(each, dict) else each for name, each in tree.items()}
    for key, value in options.items():
        *tables, name = key.split(".")
        place: Any = merged
        for depth, table in enumerate(tables, 1):
            inner = place.get(table, {})
            if not isinstance(inner, dict):
                raise BadOption(f"{'.'.join(tables[:depth])} must be a table")
            place[table] = place = dict(inner)
        place[name] = value
    return merged


def _made(tree: Mapping[str, Any]) -> Settings:
    known = all_keys()
    for key in map(_with_name, _flat(tree, "")):
        if key not in known and not any(name.startswith(f"{key}.") for name in known):
            raise BadOption(f"there is no setting {shortened(key)}{_hint(key, known)}")
    try:
        return msgspec.convert(tree, Settings)
    except msgspec.ValidationError as error:
        raise _translated(error) from error


def _with_name(key: str) -> str:
    """Return a key as all_keys() lists it, with `NAME` for the name of an operator's table."""
    table, *names = key.split(".", 2)
    kinds = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    if names and _named_struct(kinds.get(table)) is not None:
        names[0] = _NAME
    return ".".join((table, *names))


def _hint(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    if not near:
        # A key in the wrong table may be spelled right.
        last = key.rpartition(".")[2]
        by_last = {name.rpartition(".")[2]: name for name in known}
        near = [by_last[name] for name in difflib.get_close_matches(last, by_last, n=1)]
    return f"; did you mean {near[0]!r}?" if near else ""


def _flat(tree: Mapping[str, Any], prefix: str) -> Iterator[str]:
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _keys_of(kind: type[msgspec.Struct], prefix: str) -> Iterator[str]:
    for field in msgspec.structs.fields(kind):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from _keys_of(field.type, f"{prefix}{field.name}.")
        elif named := _named_struct(field.type):
            yield from _keys_of(named, f"{prefix}{field.name}.{_NAME}.")
        else:
            yield f"{prefix}{field.name}"


def _named_struct(kind: Any) -> type[msgspec.Struct] | None:
    """Return the type of the tables that an operator names; None if the setting has none."""
    last = get_args(kind)[-1:] if get_origin(kind) is dict else ()
    return last[0] if last and issubclass(last[0], msgspec.Struct) else None


def _translated(error: msgspec.ValidationError) -> BadOption:
    """Return the error in the terms of the settings file."""
    if isinstance(error.__cause__, BadOption):
        return error.__cause__
    found = _PLACE.match(str(error))
    if found is None or not found["key"]:
        return BadOption(f"settings: {error}")
    key = found["key"].replace("[...]", f".{_NAME}")
    unit = " of seconds" if key.endswith("_s") else " of bytes" if key.endswith("_bytes") else ""
    what = found["what"].lower()
    for theirs, ours in (
        ("expected `float`", f"expected a number{unit}"),
        ("expected `int`", f"expected a whole number{unit}"),
        ("expected `array`", "expected a list"),
        ("expected `object`", "expected a table"),
        ("invalid enum value", f"expected one of {', '.join(_choices(key))}, got"),
    ):
        what = what.replace(theirs, ours)
    return BadOption(f"{key}: {what.replace('`', '')}")


def _choices(key: str) -> list[str]:
    """Return the allowed values of an enumerated setting."""
    kind: Any = Settings
    for name in key.split("."):
        if named := _named_struct(kind):
            kind = named
            continue
        kinds = {field.name: field.type for field in msgspec.structs.fields(kind)}
        kind = kinds.get(name)
    return [str(choice) for choice in get_args(kind)]
