"""Codec of middleman messages: a command and a target, headers, a body, and a line with a dot.

    COMMAND TARGET
    Header:Value

    Body
    .

Lines end with LF. A CR before it belongs to the line break in the head and around the last dot. The
line break before the last line belongs to the end and not to the body: the body above is `Body`,
without one. As in SMTP, a line of the body that begins with a dot gets another one when sent, which
the receiver removes.
"""

import re
from typing import NamedTuple

from weft.errors import BadOption, BadSubject, UsageError, shortened
from weft.wire.subjects import checked_subject

# In characters; checked before the head is parsed.
HEAD_MAX = 8192
HEADERS_MAX = 32
REQUEST_ID_MAX = 128
# In place of a missing target: not a valid subject.
NO_TARGET = "*"

_HEAD_END = re.compile(r"\r?\n\r?\n")
_HEADER_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
# Characters that some reader may take for the end of a line.
_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_ENDS = ("\r\n.\r\n", "\n.\r\n", "\n.\n")
_ENDS_OF_NOTHING = (".\n", ".\r\n")
_DOT_ALONE = re.compile(r"^\.\r?$", re.MULTILINE)
_DOT_FIRST = re.compile(r"^\.", re.MULTILINE)
_REQUEST_ID = "reqid"


class MiddlemanMessage(NamedTuple):
    """One message; header names are in lower case."""

    command: str
    target: str
    headers: dict[str, str]
    body: str

    @property
    def subject(self) -> bytes:
        """The subject of the target.

        Raises:
            BadSubject: invalid target; the text names the rule.
        """
        return _subject(self.target)

    @property
    def request_id(self) -> str:
        """The value of the header ReqID.

        Raises:
            BadOption: missing or over REQUEST_ID_MAX characters.
        """
        found = self.headers.get(_REQUEST_ID, "")
        if not is_request_id(found):
            raise BadOption(
                f"{self.command} needs a header ReqID of 1 to {REQUEST_ID_MAX} characters"
            )
        return found


def read(text: str) -> MiddlemanMessage:
    """Return the message that a text consists of.

    Raises:
        UsageError: not exactly one valid message.
    """
    end = _HEAD_END.search(text, 0, HEAD_MAX)
    if end is None:
        raise UsageError(
            f"an empty line must follow the headers, within {HEAD_MAX} characters from the first"
        )
    first, *lines = _lines(text[: end.start()])
    command, _, target = first.partition(" ")
    return MiddlemanMessage(command, target, _headers(lines), _body(text[end.end() :]))


def written(command: str, target: str, body: str, **headers: str) -> str:
    """Return the text of a message; headers must not contain line breaks."""
    named = "".join([f"{name}:{value}\n" for name, value in headers.items()])
    if "." in body:
        body = _DOT_FIRST.sub("..", body)
    return f"{command} {target}\n{named}\n{body}\n.\n"


def gist(text: str) -> tuple[str, str]:
    """Return target and ReqID for the error about an invalid text: NO_TARGET and "" if unusable."""
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
    """Return whether this is a valid ReqID, which answers can repeat exactly."""
    return 0 < len(text) <= REQUEST_ID_MAX and _BREAKS.search(text) is None


def _lines(head: str) -> list[str]:
    return [line.removesuffix("\r") for line in head.split("\n")]


def _subject(target: str) -> bytes:
    subject = checked_subject(target)
    if _BREAKS.search(target) or target != target.strip():
        raise BadSubject(
            f"target {shortened(target)} has a space around it, or contains a line break"
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
    """Return the unescaped body from the text after the head."""
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
        # Two readers could disagree on the end of the message and on its body.
        raise UsageError(
            "text follows a line that is a single dot: a WebSocket message holds one message, and"
            " a line of its body that begins with a dot has a second one"
        )
    return _DOT_FIRST.sub("", body)
