"""Bundler of weft.js: joins its modules into one, so that a page loads it with one request.

Every module becomes a function that returns its exports, so other names stay private. The modules
are ours: imports and exports in a form that this file does not know fail the build.
"""

import re
from collections.abc import Mapping

_IMPORT = re.compile(r'^import \{ (\w+(?:, \w+)*) \} from "\./([\w.-]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
_EXPORT_AGAIN = re.compile(r"^export \{ \w+(?:, \w+)* \};\n", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_LEADING_COMMENT = re.compile(r"(?://.*\n)+")


def bundled(modules: Mapping[str, str], entry: str) -> str:
    """Return one module with the exports of the module `entry`.

    Args:
        modules: The texts of all modules, by the names that they import each other by.
        entry: The name of the module that pages import.

    Raises:
        ValueError: Missing module, circular import, or an import or export of another form.
    """
    order: list[str] = []
    _visit(entry, modules, order, ())
    parts = [_as_function(name, modules[name]) for name in order[:-1]]
    text = modules[entry]
    comment = _LEADING_COMMENT.match(text)
    start = comment.end() if comment else 0
    body = _with_constants(text[start:])
    _check(entry, _EXPORT_AGAIN.sub("", _EXPORT.sub("", body)))
    return "\n".join([text[:start], *parts, body.lstrip("\n")])


def _visit(
    name: str, modules: Mapping[str, str], order: list[str], importers: tuple[str, ...]
) -> None:
    """Append a module to the order, after all that it imports."""
    if name in importers:
        raise ValueError(f"{name} imports itself by way of {importers[-1]}")
    if name not in modules:
        raise ValueError(f"{importers[-1] if importers else 'nothing'} imports {name}: no module")
    for _, imported in _IMPORT.findall(modules[name]):
        if imported not in order:
            _visit(imported, modules, order, (*importers, name))
    order.append(name)


def _as_function(name: str, text: str) -> str:
    """Return a constant with the exports of a module."""
    exports = _EXPORT.findall(text)
    body = _EXPORT.sub("", _with_constants(text))
    _check(name, body)
    exported = ", ".join(exports)
    return f"const {_constant(name)} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();\n"


def _with_constants(text: str) -> str:
    """Return the text of a module with constants for its imports."""
    return _IMPORT.sub(
        lambda found: f"const {{ {found[1]} }} = {_constant(found[2])};\n",
        text,
    )


def _constant(name: str) -> str:
    return "$" + re.sub(r"\W", "_", name.removesuffix(".js"))


def _check(name: str, body: str) -> None:
    """Refuse remaining imports and exports."""
    other = _OTHER.search(body)
    if other is not None:
        raise ValueError(f"{name}: this form cannot be bundled: {other[0][:100]}")
