"""HTTP on one connection of a worker: requests in, one after the other, and their answers out.

What could be read in two ways is refused before it is read at all: bare line feeds, folded lines,
a length beside chunks. Whatever is wrong with a request is answered, and ends the connection.
"""

import re
from http import HTTPStatus
from typing import Protocol
from urllib.parse import unquote

import h11

from weft.doors.exchange import TEXT, Exchange, Request
from weft.doors.poll import Poll
from weft.doors.stream import Stream

TARGET_MAX_BYTES = 2048
# An idle connection is kept for so long, and one that has its last answer gets this long to close.
IDLE_S = 60
LINGER_S = 2

_HEAD_END = b"\r\n\r\n"
_BARE_LF = re.compile(rb"(?<!\r)\n")
_FOLDED = re.compile(rb"\r\n[ \t]")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
# Chunks of a byte each are sent with six around it; whoever sends much smaller ones is no client.
_CHUNKING_MAX = 8
_UPGRADE = "upgrade"
_NO_BODY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
_S = 1_000_000_000


class Limits(Protocol):
    """What a request may take."""

    @property
    def greeting_bytes(self) -> int:
        """Of its head."""

    @property
    def greeting_s(self) -> float:
        """Until its head is there."""

    @property
    def body_bytes(self) -> int:
        """Of its body."""

    @property
    def frame_s(self) -> float:
        """Until its body is there."""


class Reception(Protocol):
    """Whoever deals with requests, and knows the time."""

    @property
    def limits(self) -> Limits:
        """What a request may take."""

    @property
    def now_ns(self) -> int:
        """The time on the clock that only goes forward."""

    def deal(self, exchange: Exchange, door: "HttpDoor") -> None:
        """Answer a request, now or later."""

    def is_ours(self, data: bytes) -> bool:
        """Say if a request that begins like this is for this service."""

    def pass_on(self, fd: int) -> None:
        """Own a connection whose next request, of which nothing was read, is for another."""

    def left(self, door: "HttpDoor") -> None:
        """A connection is closed."""

    def refused(self, error_name: str) -> None:
        """Count what was refused before anybody dealt with it."""


class Companion(Protocol):
    """What goes along with a connection from one request to the next."""

    def end(self) -> None:
        """The connection is gone."""


class BadRequest(Exception):  # answered, never raised to a caller
    """A request that is answered with this status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class HttpDoor:
    """One connection: a request at a time."""

    def __init__(self, reception: Reception, poll: Poll, fd: int) -> None:
        """Own a connected, non-blocking socket of which nothing was read.

        Raises:
            OSError: the socket cannot be watched; it is still the caller's.
        """
        self._reception = reception
        self.stream = Stream(poll, fd, self)
        self.head = b""
        self._unread = b""
        self._http: h11.Connection | None = None
        self._request: Request | None = None
        self._body = bytearray()
        self._body_wire = 0
        self._exchange: Exchange | None = None
        self._is_last = False
        self.companion: Companion | None = None
        self._set_deadline(reception.limits.greeting_s)

    # What the stream says.

    def received(self, data: bytes) -> None:
        """Take in bytes of requests."""
        self._unread += data
        if self._exchange is None:
            self._go_on()
        elif len(self._unread) > self._reception.limits.greeting_bytes:
            # It may ask on before it has its answer, but not without end.
            self.stream.pause()

    def ended(self) -> None:
        """Nothing more is asked; what was asked is still answered."""
        self._is_last = True
        if self._exchange is None:
            self.stream.close()
        elif self._exchange.is_begun:
            # Whoever is sent an answer that lasts has hung up.
            self.stream.close()

    def drained(self) -> None:
        """There is room again."""
        if self._exchange is not None and self._exchange.on_room is not None:
            self._exchange.on_room()

    def late(self) -> None:
        """Give up on a request that does not come to its end, or on one that never began."""
        if self._is_last or (not self._unread and self._http is None):
            self.stream.close()
        else:
            self._reception.refused("TooSlow")
            self._refuse(BadRequest(HTTPStatus.REQUEST_TIMEOUT, "the request took too long"))

    def is_ours(self, data: bytes) -> bool:
        """Say if the next request is for this service; if not, the connection is passed on."""
        if self._reception.is_ours(data):
            return True
        fd = self.stream.release()
        if self.companion is not None:
            self.companion.end()
        self._reception.left(self)
        self._reception.pass_on(fd)
        return False

    def lost(self) -> None:
        """Tell whoever was about to answer."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.is_over = True
            if exchange.on_lost is not None:
                exchange.on_lost()
        if self.companion is not None:
            self.companion.end()
        self._reception.left(self)

    # What an exchange says.

    @property
    def has_room(self) -> bool:
        """Say if more may be sent now."""
        return self.stream.has_room

    def respond(self, status: int, headers: list[tuple[str, str]], body: bytes | None) -> None:
        """Send the head of an answer, and the body if it is whole."""
        http = self._http
        if http is None:
            return
        if body is not None and status not in _NO_BODY:
            headers.append(("Content-Length", str(len(body))))
        if self._is_last:
            headers.append(("Connection", "close"))
        reason = HTTPStatus(status).phrase
        response = h11.Response(status_code=status, headers=headers, reason=reason)
        sent = http.send(response) or b""
        if body and self._request is not None and self._request.method != "HEAD":
            sent += http.send(h11.Data(data=body)) or b""
        self.stream.write(sent)
        if body is not None:
            self.complete()

    def piece(self, data: bytes) -> None:
        """Send more of a body."""
        if self._http is not None and self._request is not None and self._request.method != "HEAD":
            self.stream.write(self._http.send(h11.Data(data=data)) or b"")

    def complete(self) -> None:
        """The answer is out: listen for the next request, or part."""
        http = self._http
        if http is None:
            return
        self.stream.write(http.send(h11.EndOfMessage()) or b"")
        is_last = self._is_last or http.our_state is not h11.DONE
        self._http = None
        self._request = None
        self._exchange = None
        self._body.clear()
        if is_last:
            self._part()
            return
        self._set_deadline(IDLE_S)
        self.stream.resume()
        if self._unread:
            self._go_on()
        else:
            # A browser has one connection for all services of a gateway.
            self.stream.look_first()

    def close(self) -> None:
        """Close at once."""
        self.stream.close()

    def hand_over(self) -> bytes:
        """Give the stream to another who speaks on it from now on; what came but was not read."""
        unread, self._unread = self._unread, b""
        self._exchange = None
        self.stream.deadline_ns = 0
        self._reception.left(self)
        return unread

    # Requests.

    def _go_on(self) -> None:
        """Read as far as it goes; the next request waits until this one is answered."""
        try:
            if self._http is None and not self._begin():
                return
            self._read_body()
        except BadRequest as error:
            self._reception.refused("BadRequest")
            self._refuse(error)
        except h11.RemoteProtocolError as error:
            self._reception.refused("BadRequest")
            self._refuse(BadRequest(error.error_status_hint, str(error)))

    def _begin(self) -> bool:
        """Read the head of a request; False if it is not there yet."""
        limits = self._reception.limits
        end = self._unread.find(_HEAD_END)
        if end < 0:
            if len(self._unread) > limits.greeting_bytes:
                raise BadRequest(
                    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                    f"the head of a request has at most {limits.greeting_bytes} bytes",
                )
            return False
        if end > limits.greeting_bytes:
            raise BadRequest(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"a head of {end} bytes is over the limit of {limits.greeting_bytes}",
            )
        head = self._unread[: end + len(_HEAD_END)]
        self._unread = self._unread[len(head) :]
        check_head(head)
        self._http = h11.Connection(h11.SERVER, max(len(head), 256) + 1)
        self._http.receive_data(head)
        event = self._http.next_event()
        if not isinstance(event, h11.Request):
            raise BadRequest(HTTPStatus.BAD_REQUEST, "this is no request")
        self.head = head
        self._request = request_of(event)
        self._body_wire = 0
        self._set_deadline(limits.frame_s)
        return True

    def _read_body(self) -> None:
        http, request = self._http, self._request
        if http is None or request is None:
            return
        limit = self._reception.limits.body_bytes
        self._body_wire += len(self._unread)
        if self._unread:
            http.receive_data(self._unread)
            self._unread = b""
        while True:
            event = http.next_event()
            if isinstance(event, h11.Data):
                self._body += event.data
                if len(self._body) > limit:
                    raise BadRequest(
                        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                        f"a body of over {limit} bytes is over the limit",
                    )
            elif isinstance(event, h11.EndOfMessage):
                break
            elif event is h11.NEED_DATA:
                if self._body_wire > _CHUNKING_MAX * limit:
                    raise BadRequest(HTTPStatus.BAD_REQUEST, "the chunks are too small")
                if http.they_are_waiting_for_100_continue:
                    go_on = h11.InformationalResponse(status_code=100, headers=[])
                    self.stream.write(http.send(go_on) or b"")
                return
            else:
                raise BadRequest(HTTPStatus.BAD_REQUEST, "the body ended too early")
        # What follows belongs to the next request.
        self._unread = http.trailing_data[0]
        self.stream.deadline_ns = 0
        body = bytes(self._body)
        whole = Request(
            request.method,
            request.service,
            request.door,
            request.path,
            request.query,
            request.headers,
            body,
        )
        self._request = whole
        exchange = Exchange(whole, self)
        self._exchange = exchange
        self._reception.deal(exchange, self)

    def _refuse(self, error: BadRequest) -> None:
        """Say what is wrong, and part: nobody knows where the next request would begin."""
        self._is_last = True
        body = f"{error}\n".encode()
        head = (
            f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}\r\n"
            f"Content-Type: {TEXT}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self.stream.write(head.encode() + body)
        self._part()

    def _part(self) -> None:
        self._is_last = True
        self._set_deadline(LINGER_S)
        self.stream.end()

    def _set_deadline(self, seconds: float) -> None:
        self.stream.deadline_ns = self._reception.now_ns + int(seconds * _S)


def check_head(head: bytes) -> None:
    """Refuse a head that two readers could read in two ways.

    Raises:
        BadRequest: it is one.
    """
    if _BARE_LF.search(head) or _FOLDED.search(head) or _CONTROL.search(head):
        raise BadRequest(
            HTTPStatus.BAD_REQUEST, "a head has no bare line feeds and no folded lines"
        )
    line = head.partition(b"\r\n")[0]
    if len(line.split(b" ")) != 3:
        raise BadRequest(HTTPStatus.BAD_REQUEST, "the first line is a method, a target, a version")
    if len(line) > TARGET_MAX_BYTES:
        raise BadRequest(
            HTTPStatus.REQUEST_URI_TOO_LONG, f"a first line has at most {TARGET_MAX_BYTES} bytes"
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
    if len(elements) < 2:
        raise BadRequest(HTTPStatus.NOT_FOUND, "there is no such page")
    return Request(
        method=event.method.decode("latin-1"),
        service=elements[0],
        door=elements[1],
        path=tuple(elements[2:]),
        query=dict(_parameters(query)),
        headers=headers,
    )


def is_upgrade(request: Request) -> bool:
    """Say if a request wants to speak WebSocket."""
    return request.headers.get(_UPGRADE, "").lower() == "websocket"


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
