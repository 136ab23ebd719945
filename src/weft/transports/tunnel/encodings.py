"""How a datagram is put where its text alone could be mistaken for something else.

JSON has no line breaks of its own, but it may hold anything that is no control character: what
would end a script, or a string in one. Each encoding has a way for the text of a datagram and one
for the path that it names; a path is meant to stand within quotes that a template has around it.
"""

import base64
import json
import re
from collections.abc import Callable
from typing import NamedTuple

_LINE_END = re.compile(rb"\r\n|\r|\n")
# What could end a script or a comment, begin another, or be taken for the end of a line in one.
_IN_SCRIPTS = (
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    (b"&", b"\\u0026"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)


class Encoding(NamedTuple):
    """What is done with the JSON of a datagram, and with a path."""

    of_text: Callable[[bytes], bytes]
    of_path: Callable[[str], bytes]


def as_it_is(text: bytes) -> bytes:
    """JSON as it is."""
    return text


def in_lines(text: bytes) -> bytes:
    """JSON behind a `data: ` of server-sent events: every line begins with it."""
    return b"\ndata: ".join(_LINE_END.split(text)) if b"\n" in text or b"\r" in text else text


def in_script(text: bytes) -> bytes:
    """JSON as an expression of a script, inside HTML or not."""
    for char, escaped in _IN_SCRIPTS:
        text = text.replace(char, escaped)
    return text


def in_base64(text: bytes) -> bytes:
    """JSON as base64."""
    return base64.b64encode(text)


def _quoted(path: str) -> bytes:
    return json.dumps(path, ensure_ascii=False)[1:-1].encode()


# By the name that a format has for it.
ENCODINGS = {
    "json": Encoding(as_it_is, _quoted),
    "sse": Encoding(in_lines, lambda path: _LINE_END.sub(b" ", path.encode())),
    "script": Encoding(in_script, lambda path: in_script(_quoted(path).replace(b"'", b"\\u0027"))),
    "base64": Encoding(in_base64, lambda path: base64.b64encode(path.encode())),
}
