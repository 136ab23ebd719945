"""Paths as browsers and scripts write them, subjects as the rest does: `/a/b` is `a.b`."""

from weft.errors import BadSubject, shortened
from weft.wire.subjects import checked_pattern, checked_subject


def subject_of(path: object) -> bytes:
    """The subject that a path names.

    Raises:
        BadSubject: it names none.
    """
    return checked_subject(_dotted(path))


def patterns_of(path: object, *, with_subpaths: bool) -> list[bytes]:
    """The patterns that stand for a path, which may hold wildcards, and for all below it.

    Raises:
        BadSubject: it is no path, or one that nothing can be below.
    """
    dotted = _dotted(path)
    patterns = [checked_pattern(dotted)]
    if with_subpaths:
        patterns.append(checked_pattern(f"{dotted}.>"))
    return patterns


def path_of(subject: bytes) -> str:
    """The path that a subject is."""
    return "/" + subject.decode().replace(".", "/")


def _dotted(path: object) -> str:
    if not isinstance(path, str) or not path.startswith("/"):
        shown = shortened(path) if isinstance(path, str) else type(path).__name__
        raise BadSubject(f"a path is a string that begins with '/', not {shown}")
    if "." in path:
        raise BadSubject(f"path {shortened(path)} holds a dot, which no element may")
    return path[1:].replace("/", ".")
