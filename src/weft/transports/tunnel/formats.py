"""Formats of tunnels: header, envelope of each datagram, keepalive and footer.

A format is four templates, a content type, an encoding and an interval. Some are built in;
operators may define more. Clients choose one by name and cannot change it.

A stream begins with the header, followed by an envelope for each datagram, a keepalive after each
interval of silence, and the footer at the end. A held format is a long poll: its response is one
list of all pending datagrams, and its interval is how long it is held.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from weft.errors import BadOption, shortened
from weft.transports.tunnel.encodings import ENCODINGS, Encoding
from weft.transports.tunnel.templates import Template

KEEPALIVE_MAX_S = 3600.0
FORMATS_MAX = 64

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}\Z")
_CALLBACK = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{0,31}(?:\.[A-Za-z_$][A-Za-z0-9_$]{0,31}){0,3}\Z")
_CONTENT_TYPE = re.compile(r"[\x21-\x7e]+/[\x20-\x7e]+\Z")
# Content types in which plain JSON could become markup or a script.
_MARKUP = re.compile(r"html|xml|svg|script", re.IGNORECASE)
_SAFE_IN_MARKUP = ("script", "base64")

# Placeholders of each template: the tunnel's id and path almost everywhere.
_AT_ENDS = ("tunnel", "path", "data")
_IN_ENVELOPE = ("tunnel", "path", "data", "id")
_IN_KEEPALIVE = ("tunnel", "path")
_IN_CONTENT_TYPE = ("tunnel",)


class FormatSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Format in the operator's settings; see docs/doors.md."""

    header: str = "%(data)s\n"
    envelope: str = "%(data)s\n"
    keepalive: str = "\n"
    footer: str = "%(data)s\n"
    content_type: str = "text/plain; charset=utf-8"
    encoding: str = "json"
    keepalive_s: float = 25.0


@dataclass(frozen=True, slots=True)
class FormatValues:
    """Values for the placeholders of one tunnel: its id, its path, and a JSONP callback."""

    tunnel: bytes
    path: bytes
    callback: bytes = b""


@dataclass(frozen=True, slots=True)
class Format:
    """Checked format; formats with equal envelopes have the same `dialect`, their cache key."""

    name: str
    dialect: str
    encoding: Encoding
    keepalive_s: float
    _content_type: Template
    _header: Template
    _envelope: Template
    _keepalive: Template
    _footer: Template
    # Whether the envelope of a datagram is the same in all tunnels.
    is_same_for_all: bool = True
    is_held: bool = False
    # Sent first on request: some proxies and browsers hold back the first bytes.
    padding: bytes = b""

    def content_type(self, place: FormatValues) -> str:
        """Return the content type of a response."""
        return self._content_type.filled(tunnel=place.tunnel).decode()

    def header(self, place: FormatValues, text: bytes) -> bytes:
        """Return the start of a stream; the text describes the tunnel as JSON."""
        data = self.encoding.of_text(text)
        return self._header.filled(tunnel=place.tunnel, path=place.path, data=data)

    def envelope(self, place: FormatValues, known_by: str, path: str, text: bytes) -> bytes:
        """Return a datagram in its envelope, from its id, path and JSON."""
        return self._envelope.filled(
            tunnel=place.tunnel,
            id=known_by.encode(),
            path=self.encoding.of_path(path),
            data=self.encoding.of_text(text),
        )

    def keepalive(self, place: FormatValues) -> bytes:
        """Return a keepalive."""
        return self._keepalive.filled(tunnel=place.tunnel, path=place.path)

    def footer(self, place: FormatValues, text: bytes) -> bytes:
        """Return the end of a stream; the text is the reason as JSON."""
        data = self.encoding.of_text(text)
        return self._footer.filled(tunnel=place.tunnel, path=place.path, data=data)

    def whole(self, place: FormatValues, datagrams: list[bytes]) -> bytes:
        """Return the response of a held format: all envelopes as one list."""
        begin = self._header.filled(callback=place.callback)
        return begin + b",".join(datagrams) + self._footer.filled()


def formats_of(own: Mapping[str, FormatSettings], *, has_jsonp: bool = False) -> dict[str, Format]:
    """Return all formats that clients may choose, by name.

    Raises:
        BadOption: invalid format of the operator; the text names the key.
    """
    if len(own) > FORMATS_MAX:
        raise BadOption(f"{len(own)} formats are over the limit of {FORMATS_MAX}")
    known = dict(_STREAMS)
    for name, settings in own.items():
        if not _NAME.match(name):
            raise BadOption(
                f"formats: {shortened(name)} is not 1 to 32 small letters, digits, '-' and '_'"
            )
        if name in _HELD:
            raise BadOption(f"formats.{name}: this one is built in, and cannot be another")
        known[name] = _made(name, settings)
    known |= {name: held for name, held in _HELD.items() if has_jsonp or name != "jsonp"}
    return known


def checked_callback(name: str) -> bytes:
    """Return the name of a page's JSONP callback.

    Raises:
        BadOption: not a plain function name; anything else could inject a script.
    """
    if not _CALLBACK.match(name):
        raise BadOption("callback is the name of a function: letters, digits, '_', '$', and dots")
    return name.encode()


def _made(name: str, settings: FormatSettings, padding: bytes = b"") -> Format:
    prefix = f"formats.{name}."
    if settings.encoding not in ENCODINGS:
        raise BadOption(
            f"{prefix}encoding is {shortened(settings.encoding)};"
            f" it must be one of {', '.join(ENCODINGS)}"
        )
    if not 0 < settings.keepalive_s <= KEEPALIVE_MAX_S:
        raise BadOption(
            f"{prefix}keepalive_s is {settings.keepalive_s};"
            f" it must be more than 0 and at most {KEEPALIVE_MAX_S:g}"
        )
    if not _CONTENT_TYPE.match(settings.content_type):
        raise BadOption(f"{prefix}content_type {shortened(settings.content_type)} is invalid")
    if _MARKUP.search(settings.content_type) and settings.encoding not in _SAFE_IN_MARKUP:
        raise BadOption(
            f"{prefix}encoding is {settings.encoding}: in {settings.content_type} published"
            f" data could become markup; it must be one of {', '.join(_SAFE_IN_MARKUP)}"
        )

    def cut(key: str, places: tuple[str, ...]) -> Template:
        try:
            return Template(getattr(settings, key), places)
        except BadOption as error:
            raise BadOption(f"{prefix}{key}: {error}") from error

    return Format(
        name=name,
        dialect=f"tunnel {settings.encoding} {settings.envelope}",
        encoding=ENCODINGS[settings.encoding],
        keepalive_s=settings.keepalive_s,
        _content_type=cut("content_type", _IN_CONTENT_TYPE),
        _header=cut("header", _AT_ENDS),
        _envelope=cut("envelope", _IN_ENVELOPE),
        _keepalive=cut("keepalive", _IN_KEEPALIVE),
        _footer=cut("footer", _AT_ENDS),
        is_same_for_all="%(tunnel)s" not in settings.envelope,
        padding=padding,
    )


def _held(name: str, begin: str, end: str, content_type: str, encoding: str) -> Format:
    return Format(
        name=name,
        dialect=f"tunnel {encoding} held",
        encoding=ENCODINGS[encoding],
        keepalive_s=25.0,
        _content_type=Template(content_type, ()),
        _header=Template(begin, ("callback",)),
        _envelope=Template("%(data)s", _IN_ENVELOPE),
        _keepalive=Template("", ()),
        _footer=Template(end, ()),
        is_held=True,
    )


_PADDING_BYTES = 2048
_PART = "Content-Type: application/json\r\n\r\n"
_BOUNDARY = "weft-%(tunnel)s"
_SSE = FormatSettings(
    header="retry: 2000\nevent: open\ndata: %(data)s\n\n",
    envelope="id: %(id)s\ndata: %(data)s\n\n",
    # No empty line: some clients take that for an empty event.
    keepalive=":\n",
    footer="event: close\ndata: %(data)s\n\n",
    content_type="text/event-stream",
    encoding="sse",
    keepalive_s=15.0,
)
_NDJSON = FormatSettings(content_type="application/x-ndjson", keepalive_s=15.0)
_SCRIPT = FormatSettings(
    header='<!DOCTYPE html>\n<meta charset="utf-8">\n'
    '<script>parent.weft("open",%(data)s)</script>\n',
    envelope='<script>parent.weft("datagram",%(data)s)</script>\n',
    keepalive="<!-- -->\n",
    footer='<script>parent.weft("close",%(data)s)</script>\n',
    content_type="text/html; charset=utf-8",
    encoding="script",
    keepalive_s=15.0,
)
# The boundary follows each part at once: only it shows the client that the part has ended.
_MULTIPART = FormatSettings(
    header=f"--{_BOUNDARY}\r\n{_PART}%(data)s\r\n--{_BOUNDARY}\r\n",
    envelope=f"{_PART}%(data)s\r\n--{_BOUNDARY}\r\n",
    keepalive=f"{_PART}{{}}\r\n--{_BOUNDARY}\r\n",
    footer=f"{_PART}%(data)s\r\n--{_BOUNDARY}--\r\n",
    content_type=f"multipart/x-mixed-replace; boundary={_BOUNDARY}",
    keepalive_s=15.0,
)
_STREAMS = {
    "sse": _made("sse", _SSE, b":" + b" " * _PADDING_BYTES + b"\n"),
    "ndjson": _made("ndjson", _NDJSON),
    "script": _made("script", _SCRIPT, b"<!--" + b" " * _PADDING_BYTES + b"-->\n"),
    "multipart": _made("multipart", _MULTIPART),
}
_HELD = {
    "poll": _held("poll", "[", "]\n", "application/json", "json"),
    "jsonp": _held(
        "jsonp", "/**/%(callback)s([", "]);\n", "text/javascript; charset=utf-8", "script"
    ),
}
