"""Rules of names and sizes: classes, modules, folders, files, and the imports of the client."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from tools.style.findings import Finding, Rule
from tools.style.imports import cython_imports_in, imports_in

RULES = (
    Rule("class-names", "public class names are unique in src/weft"),
    Rule("module-names", "a module name recurs only for the same kind of thing"),
    Rule("folder-size", "at most 22 modules in a folder"),
    Rule("file-size", "at most 400 lines in a file"),
    Rule("client-imports", "weft.client imports only weft.wire and weft.errors"),
)
FOLDER_MODULES_MAX = 22
FILE_LINES_MAX = 400
# Modules of these names are the same kind of thing in every folder.
KINDS = frozenset(
    (
        *("__init__", "__main__", "channel", "channels", "columns", "connection", "coordinator"),
        *("errors", "gateway", "handshake", "history", "identity", "key_file", "listener"),
        *("maintenance", "options", "protocol", "queue", "registry", "report", "requests"),
        *("runtime_grants", "server", "session", "settings", "sink", "source", "subscription"),
        *("tickets", "transport", "types", "websocket"),
    )
)
# A module here has the name of a command or a job, as its users type it.
_NAMED_BY_USERS = ("commands", "jobs")
_ROOT = "src/weft"
_CLIENT = f"{_ROOT}/client/"
_WIRE = f"{_ROOT}/wire/"
_CLIENT_MAY_IMPORT = ("weft.client", "weft.wire", "weft.errors")
_CLASS = re.compile(r"^class ([A-Z]\w*)", re.MULTILINE)

Source = tuple[str, str]


def check(sources: Sequence[Source]) -> Iterator[Finding]:
    """Yield the findings in files below src/weft; each source is a path and its text."""
    own = [each for each in sources if each[0].startswith(f"{_ROOT}/")]
    modules = [each for each in own if each[0].endswith(".py")]
    yield from class_names(modules)
    yield from module_names(path for path, _ in modules)
    yield from folder_sizes(path for path, _ in modules)
    yield from file_sizes(each for each in own if not each[0].endswith(".md"))
    yield from client_imports(own)


def class_names(modules: Iterable[Source]) -> Iterator[Finding]:
    """Yield every public class whose name another module has, too."""
    places = defaultdict[str, list[tuple[str, int]]](list)
    for path, source in modules:
        if _CLASS.search(source):
            for name, line in _classes(source):
                places[name].append((path, line))
    for name, found in places.items():
        for path, line in found if len(found) > 1 else ():
            others = ", ".join(other for other, _ in found if other != path)
            yield Finding(path, line, "class-names", f"class {name}, also in {others or path}")


def _classes(source: str) -> Iterator[tuple[str, int]]:
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, node.lineno


def module_names(paths: Iterable[str]) -> Iterator[Finding]:
    """Yield every module whose name recurs in another folder and is not that of a kind."""
    places = defaultdict[str, list[str]](list)
    for path in paths:
        pure = PurePosixPath(path)
        if pure.stem not in KINDS and pure.parent.name not in _NAMED_BY_USERS:
            places[pure.stem].append(path)
    for name, found in places.items():
        for path in found if len(found) > 1 else ():
            others = ", ".join(other for other in found if other != path)
            yield Finding(path, 1, "module-names", f"module {name}, also {others}")


def folder_sizes(paths: Iterable[str]) -> Iterator[Finding]:
    """Yield every folder with too many modules, its `__init__` not counted."""
    counts = defaultdict[str, int](int)
    for path in paths:
        pure = PurePosixPath(path)
        counts[str(pure.parent)] += pure.stem != "__init__"
    for folder, count in counts.items():
        if count > FOLDER_MODULES_MAX:
            text = f"{count} modules, limit {FOLDER_MODULES_MAX}"
            yield Finding(folder, 1, "folder-size", text)


def file_sizes(sources: Iterable[Source]) -> Iterator[Finding]:
    """Yield every file with too many lines."""
    for path, source in sources:
        count = len(source.splitlines())
        if count > FILE_LINES_MAX:
            yield Finding(path, count, "file-size", f"{count} lines, limit {FILE_LINES_MAX}")


def client_imports(sources: Sequence[Source]) -> Iterator[Finding]:
    """Yield every import of weft.client from a package that clients do without.

    Applies once the package weft.wire exists.
    """
    if not any(path.startswith(_WIRE) for path, _ in sources):
        return
    for path, source in sources:
        if not path.startswith(_CLIENT) or path.endswith(".md"):
            continue
        read = imports_in if path.endswith(".py") else cython_imports_in
        for line, module in read(source, Path(path).relative_to("src")):
            if f"{module}.".startswith("weft.") and not _is_for_clients(module):
                yield Finding(path, line, "client-imports", f"imports {module}")


def _is_for_clients(module: str) -> bool:
    return f"{module}.".startswith(tuple(f"{each}." for each in _CLIENT_MAY_IMPORT))
