"""Encodings of datagrams, for formats in which plain JSON could be misinterpreted.

JSON text has no line breaks of its own, but it may contain anything else: the end of a script, or
of a string in one. Each encoding converts the text of a datagram, and the path that it names; a
path stands within quotes in the template.
"""

import base64
import json
import re
from collections.abc import Callable
from typing import NamedTuple

_LINE_END = re.compile(rb"\r\n|\r|\n")
# Characters that could end a script or a comment, begin another, or count as the end of a line.
_IN_SCRIPTS = (
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    (b"&", b"\\u0026"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)


class Encoding(NamedTuple):
    """Functions that encode the JSON of a datagram, and a path."""

    of_text: Callable[[bytes], bytes]
    of_path: Callable[[str], bytes]


def as_it_is(text: bytes) -> bytes:
    """Return JSON unchanged."""
    return text


def in_lines(text: bytes) -> bytes:
    """Return JSON for server-sent events: every line after the first begins with `data: `."""
    return b"\ndata: ".join(_LINE_END.split(text)) if b"\n" in text or b"\r" in text else text


def in_script(text: bytes) -> bytes:
    """Return JSON as a script expression, also safe inside HTML."""
    for char, escaped in _IN_SCRIPTS:
        text = text.replace(char, escaped)
    return text


def in_base64(text: bytes) -> bytes:
    """Return JSON as base64."""
    return base64.b64encode(text)


def _quoted(path: str) -> bytes:
    return json.dumps(path, ensure_ascii=False)[1:-1].encode()


# By the name that formats use.
ENCODINGS = {
    "json": Encoding(as_it_is, _quoted),
    "sse": Encoding(in_lines, lambda path: _LINE_END.sub(b" ", path.encode())),
    "script": Encoding(in_script, lambda path: in_script(_quoted(path).replace(b"'", b"\\u0027"))),
    "base64": Encoding(in_base64, lambda path: base64.b64encode(path.encode())),
}
