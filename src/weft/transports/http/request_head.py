"""The head of an HTTP request: refused if it could be read in two ways, then taken apart; pure.

Bare line feeds, folded lines, a length beside chunks, two hosts: whoever stands in front of a
gateway might read them otherwise than it does, so it does not read them at all.
"""

import re
from http import HTTPStatus
from urllib.parse import unquote

import h11

from weft.errors import BadOption, FrameTooBig, NotKnown, Overloaded, TooSlow, WeftError
from weft.transports.http.exchange import Request

# CometD puts 2,000 bytes of messages there, and encodes them once more than it counts.
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
    """A request that is answered with this status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status

    def as_error(self) -> WeftError:
        """Return it as the error that a client is told of."""
        return _ERRORS.get(self.status, BadOption)(str(self))


def check_head(head: bytes) -> None:
    """Refuse a head that two readers could read in two ways.

    Raises:
        BadRequest: it is one.
    """
    if _BARE_LF.search(head) or _FOLDED.search(head) or _CONTROL.search(head):
        raise BadRequest(
            HTTPStatus.BAD_REQUEST, "a head has no bare line feeds and no folded lines"
        )
    line = _FIRST_LINE.match(head)
    if line is None:
        raise BadRequest(
            HTTPStatus.BAD_REQUEST, "the first line is a method, a path, and 1.0 or 1.1 of HTTP"
        )
    if len(line[1]) > TARGET_MAX_BYTES:
        raise BadRequest(
            HTTPStatus.REQUEST_URI_TOO_LONG, f"a target has at most {TARGET_MAX_BYTES} bytes"
        )


def request_of(event: h11.Request) -> Request:
    """A request as the doors see it, without its body.

    Raises:
        BadRequest: it can be read in two ways, or is not UTF-8.
    """
    headers: dict[str, str] = {}
    for name, value in event.headers:
        known = name.decode("latin-1")
        text = value.decode("latin-1")
        headers[known] = f"{headers[known]}, {text}" if known in headers else text
    if "transfer-encoding" in headers and "content-length" in headers:
        raise BadRequest(HTTPStatus.BAD_REQUEST, "a body has a length or chunks, not both")
    if "," in headers.get("host", ""):
        raise BadRequest(HTTPStatus.BAD_REQUEST, "a request names one host")
    target, _, query = event.target.decode("latin-1").partition("?")
    elements = [_decoded(element, plus=False) for element in target.split("/")[1:]]
    if any("/" in element for element in elements):
        raise BadRequest(HTTPStatus.BAD_REQUEST, "an element of a path holds no slash")
    if len(elements) < 2:
        raise BadRequest(HTTPStatus.NOT_FOUND, "there is no such page")
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
        raise BadRequest(HTTPStatus.BAD_REQUEST, "a target is UTF-8") from error
