"""The text of middleman messages: a command and a target, headers, a body, a line with a dot.

    COMMAND TARGET
    Header:Value

    Body
    .

Lines end with LF, and a CR before it belongs to the line break wherever the message has its own:
in the head, around the last dot. The break before the last line belongs to the end and not to the
body: the body above is `Body`, without one. A line of the body that begins with a dot gets another
one on its way and loses it on arrival, as in SMTP, so every body comes out as it went in.
"""

import re
from typing import NamedTuple

from weft.errors import BadOption, BadSubject, UsageError, shortened
from weft.wire.subjects import checked_subject

# In characters; a head is refused before it is looked at any further.
HEAD_MAX = 8192
HEADERS_MAX = 32
REQUEST_ID_MAX = 128
# What stands for the target where there is none: no message can be for it.
NO_TARGET = "*"

_HEAD_END = re.compile(r"\r?\n\r?\n")
_HEADER_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
# What some reader may take for the end of a line.
_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_ENDS = ("\r\n.\r\n", "\n.\r\n", "\n.\n")
_ENDS_OF_NOTHING = (".\n", ".\r\n")
_DOT_ALONE = re.compile(r"^\.\r?$", re.MULTILINE)
_DOT_FIRST = re.compile(r"^\.", re.MULTILINE)
_REQUEST_ID = "reqid"


class Said(NamedTuple):
    """One message: headers by their names in small letters."""

    command: str
    target: str
    headers: dict[str, str]
    body: str

    @property
    def subject(self) -> bytes:
        """The subject that the target is.

        Raises:
            BadSubject: it is none; the text names the rule.
        """
        return _subject(self.target)

    @property
    def request_id(self) -> str:
        """The ReqID.

        Raises:
            BadOption: there is none, or it is too long.
        """
        found = self.headers.get(_REQUEST_ID, "")
        if not is_request_id(found):
            raise BadOption(
                f"{self.command} needs a header ReqID of 1 to {REQUEST_ID_MAX} characters"
            )
        return found


def read(text: str) -> Said:
    """What a text says; it holds one whole message and nothing else.

    Raises:
        UsageError: it does not.
    """
    end = _HEAD_END.search(text, 0, HEAD_MAX)
    if end is None:
        raise UsageError(
            f"an empty line must follow the headers, within {HEAD_MAX} characters from the first"
        )
    first, *lines = _lines(text[: end.start()])
    command, _, target = first.partition(" ")
    return Said(command, target, _headers(lines), _body(text[end.end() :]))


def written(command: str, target: str, body: str, **headers: str) -> str:
    """The text that says this; names and values of headers are ours, and without line breaks."""
    named = "".join([f"{name}:{value}\n" for name, value in headers.items()])
    if "." in body:
        body = _DOT_FIRST.sub("..", body)
    return f"{command} {target}\n{named}\n{body}\n.\n"


def gist(text: str) -> tuple[str, str]:
    """What can be told back of a text that is refused: its target or NO_TARGET, and its ReqID."""
    first, *lines = _lines(text[:HEAD_MAX])
    target = first.partition(" ")[2]
    try:
        _subject(target)
    except BadSubject:
        target = NO_TARGET
    for line in lines[:HEADERS_MAX]:
        name, _, value = line.partition(":")
        if name.lower() == _REQUEST_ID and is_request_id(value.strip(" \t")):
            return target, value.strip(" \t")
        if not line:
            break
    return target, ""


def is_request_id(text: str) -> bool:
    """Say if a request can be known by this: it is told back as it is."""
    return 0 < len(text) <= REQUEST_ID_MAX and _BREAKS.search(text) is None


def _lines(head: str) -> list[str]:
    return [line.removesuffix("\r") for line in head.split("\n")]


def _subject(target: str) -> bytes:
    subject = checked_subject(target)
    if _BREAKS.search(target) or target != target.strip():
        raise BadSubject(
            f"target {shortened(target)} has a space around it, or a character that ends lines"
        )
    return subject


def _headers(lines: list[str]) -> dict[str, str]:
    if len(lines) > HEADERS_MAX:
        raise BadOption(f"{len(lines)} headers are over the limit of {HEADERS_MAX}")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not _HEADER_NAME.fullmatch(name) or _BREAKS.search(value.strip(" \t")):
            raise BadOption(f"{shortened(line)} is no header: NAME:VALUE, then an empty line")
        if name.lower() in headers:
            raise BadOption(f"the header {name} occurs twice")
        headers[name.lower()] = value.strip(" \t")
    return headers


def _body(rest: str) -> str:
    """The body in what follows the head."""
    if rest in _ENDS_OF_NOTHING:
        return ""
    for end in _ENDS:
        if rest.endswith(end):
            body = rest[: -len(end)]
            break
    else:
        raise UsageError("a message ends with a line that is a single dot")
    if "." not in body:
        return body
    if _DOT_ALONE.search(body):
        # Two readers could disagree on where the message ends, and on what it says.
        raise UsageError(
            "text follows a line that is a single dot: a WebSocket message holds one message, and"
            " a line of its body that begins with a dot has a second one"
        )
    return _DOT_FIRST.sub("", body)
