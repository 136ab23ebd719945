"""Paths of browsers and scripts: `/a/b` is the subject `a.b`."""

from weft.errors import BadSubject, shortened
from weft.wire.subjects import checked_pattern, checked_subject


def subject_of(path: object) -> bytes:
    """Return the subject of a path.

    Raises:
        BadSubject: not a path, or an invalid subject.
    """
    return checked_subject(_dotted(path))


def patterns_of(path: object, *, with_subpaths: bool) -> list[bytes]:
    """Return the patterns of a path, which may hold wildcards, and optionally of all below it.

    Raises:
        BadSubject: not a path, an invalid pattern, or one that cannot have subpaths.
    """
    dotted = _dotted(path)
    patterns = [checked_pattern(dotted)]
    if with_subpaths:
        patterns.append(checked_pattern(f"{dotted}.>"))
    return patterns


def path_of(subject: bytes) -> str:
    """Return the path of a subject."""
    return "/" + subject.decode().replace(".", "/")


def _dotted(path: object) -> str:
    if not isinstance(path, str) or not path.startswith("/"):
        shown = shortened(path) if isinstance(path, str) else type(path).__name__
        raise BadSubject(f"a path is a string that begins with '/', not {shown}")
    if "." in path:
        raise BadSubject(f"path {shortened(path)} contains a dot: dots are not allowed in paths")
    return path[1:].replace("/", ".")
