"""Parser of HTTP request heads that refuses ambiguous ones; pure.

Bare line feeds, folded lines, a length together with chunks, two hosts: a proxy in front of the
gateway could interpret them differently (request smuggling), so they are refused.
"""

import re
from http import HTTPStatus
from urllib.parse import unquote

import h11

from weft.errors import BadOption, FrameTooBig, NotKnown, Overloaded, TooSlow, WeftError
from weft.transports.http.exchange import Request

# CometD allows 2,000 bytes of messages in a URL, but counts them before it encodes them again.
TARGET_MAX_BYTES = 3072

_BARE_LF = re.compile(rb"(?<!\r)\n")
_FOLDED = re.compile(rb"\r\n[ \t]")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)")
_FIRST_LINE = re.compile(rb"[A-Z]+ (/[!-~]*) HTTP/1\.[01]\r\n")


_ERRORS: dict[int, type[WeftError]] = {
    HTTPStatus.NOT_FOUND: NotKnown,
    HTTPStatus.REQUEST_TIMEOUT: TooSlow,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: FrameTooBig,
    HTTPStatus.REQUEST_URI_TOO_LONG: FrameTooBig,
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: FrameTooBig,
    HTTPStatus.SERVICE_UNAVAILABLE: Overloaded,
}


class BadRequest(Exception):  # answered, never raised to a caller
    """Invalid request, answered with this status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status

    def as_error(self) -> WeftError:
        """Return the error that is sent to the client."""
        return _ERRORS.get(self.status, BadOption)(str(self))


def check_head(head: bytes) -> None:
    """Check that a head is unambiguous.

    Raises:
        BadRequest: bare line feeds, folded lines, an invalid first line or too long a target.
    """
    if _BARE_LF.search(head) or _FOLDED.search(head) or _CONTROL.search(head):
        raise BadRequest(
            HTTPStatus.BAD_REQUEST, "a head must not have bare line feeds or folded lines"
        )
    line = _FIRST_LINE.match(head)
    if line is None:
        raise BadRequest(
            HTTPStatus.BAD_REQUEST,
            "the first line must be a method, a path, and HTTP/1.0 or HTTP/1.1",
        )
    if len(line[1]) > TARGET_MAX_BYTES:
        raise BadRequest(
            HTTPStatus.REQUEST_URI_TOO_LONG, f"a target has at most {TARGET_MAX_BYTES} bytes"
        )


def request_of(event: h11.Request) -> Request:
    """Return a request without its body.

    Raises:
        BadRequest: ambiguous, invalid path or query, or not UTF-8.
    """
    headers: dict[str, str] = {}
    for name, value in event.headers:
        known = name.decode("latin-1")
        text = value.decode("latin-1")
        headers[known] = f"{headers[known]}, {text}" if known in headers else text
    if "transfer-encoding" in headers and "content-length" in headers:
        raise BadRequest(HTTPStatus.BAD_REQUEST, "a body must not have both a length and chunks")
    if "," in headers.get("host", ""):
        raise BadRequest(HTTPStatus.BAD_REQUEST, "a request must name exactly one host")
    target, _, query = event.target.decode("latin-1").partition("?")
    elements = [_decoded(element, plus=False) for element in target.split("/")[1:]]
    if any("/" in element for element in elements):
        raise BadRequest(HTTPStatus.BAD_REQUEST, "an element of a path must not contain a slash")
    if len(elements) < 2:
        raise BadRequest(HTTPStatus.NOT_FOUND, "no such page")
    return Request(
        method=event.method.decode("latin-1"),
        service=elements[0],
        door=elements[1],
        path=tuple(elements[2:]),
        query=dict(_parameters(query)),
        headers=headers,
        version=event.http_version.decode("latin-1"),
    )


def _parameters(query: str) -> list[tuple[str, str]]:
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    found = [(_decoded(name, plus=True), _decoded(value, plus=True)) for name, _, value in pairs]
    names = [name for name, _ in found]
    if len(set(names)) != len(names):
        raise BadRequest(HTTPStatus.BAD_REQUEST, "a parameter is given twice")
    return found


def _decoded(text: str, *, plus: bool) -> str:
    try:
        return unquote(text.replace("+", " ") if plus else text, errors="strict")
    except UnicodeDecodeError as error:
        raise BadRequest(HTTPStatus.BAD_REQUEST, "a target must be UTF-8") from error
