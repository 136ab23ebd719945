"""One HTTP response of the gateway's own pages, and its headers: pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus

from weft.errors import WeftError
from weft.gateway.http.content_negotiation import accepts_gzip, has_tag
from weft.gateway.http.discovery import Headers
from weft.transports.http.exchange import JSON, error_body

NO_BODY = (HTTPStatus.NOT_MODIFIED, HTTPStatus.NO_CONTENT)
# A year, the longest time that caches are meant to honour.
_FOR_EVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class PageResponse:
    """Response to a request for a page."""

    status: int
    body: str
    kind: str = "text/plain; charset=utf-8"
    # Entity tag of a file that is the same for every client; any origin may import the file.
    tag: str = ""
    headers: Headers = ()
    # The same compressed; its entity tag differs, because its bytes do.
    gzipped: bytes = b""
    # Its path names its content.
    is_immutable: bool = False

    def for_client(self, headers: Mapping[str, str]) -> "PageResponse":
        """Return the response to a request for this file with these headers."""
        is_gzipped = bool(self.gzipped) and accepts_gzip(headers)
        tag = f'{self.tag[:-1]}-gzip"' if is_gzipped else self.tag
        gzipped = self.gzipped if is_gzipped else b""
        if has_tag(headers, tag):
            return replace(self, status=304, body="", gzipped=b"", tag=tag)
        return replace(self, gzipped=gzipped, tag=tag)


def refused(status: int, error: WeftError) -> PageResponse:
    """Return the page of an error: JSON, as in the transports of a service."""
    return PageResponse(status, error_body(error).decode(), JSON)


def headers_of(page: PageResponse, length: int) -> list[tuple[str, str]]:
    """Return the headers of a response whose body has this length."""
    kept = _FOR_EVER if page.is_immutable else "no-cache"
    headers = [
        ("Content-Type", page.kind),
        ("Cache-Control", kept if page.tag else "no-store"),
        ("X-Content-Type-Options", "nosniff"),
    ]
    if page.status not in NO_BODY:
        # Clients would take it as the length of the cached file.
        headers.append(("Content-Length", str(length)))
    if page.status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers.append(("Allow", "GET, HEAD"))
    if page.status == HTTPStatus.UNAUTHORIZED:
        headers.append(("WWW-Authenticate", 'Bearer realm="weft"'))
    if page.tag:
        tagged = ("ETag", page.tag), ("Vary", "Accept-Encoding")
        headers += [*tagged, ("Access-Control-Allow-Origin", "*")]
    if page.gzipped:
        headers.append(("Content-Encoding", "gzip"))
    return [*headers, *page.headers]
