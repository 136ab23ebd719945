"""HTTP/1.1 on one connection: requests in order, one at a time, and their responses.

An invalid request is answered and ends the connection: the start of the next one is unknown.
Pipelined requests are handled over several turns, so that other connections are served too.
"""

from dataclasses import replace
from http import HTTPStatus
from itertools import count

import h11

from weft.errors import Overloaded
from weft.transports.http.exchange import JSON, Exchange, Request, error_body
from weft.transports.http.request_head import BadRequest, check_head, request_of
from weft.transports.http.server_interface import Companion, Reception
from weft.transports.http.stream import Stream
from weft.transports.loop.poller import Poll

# Seconds that an idle connection is kept, and that a peer has to close after the last response.
IDLE_S = 60
LINGER_S = 2
# Requests handled before other connections are served.
AT_ONCE_MAX = 16
# A body may have this many chunks, and one more for each CHUNK_BYTES: parsing a chunk costs far
# more than sending one.
CHUNKS_MAX = 256
CHUNK_BYTES = 64

_NUMBERS = count(1)
_HEAD_END = b"\r\n\r\n"
# Limit of the line before a chunk, including its extensions.
_CHUNK_HEAD_BYTES = 256
_NO_BODY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
_S = 1_000_000_000


class HttpDoor:
    """One connection, which handles one request at a time."""

    __slots__ = (
        *(
            "_body",
            "_chunks",
            "_exchange",
            "_held",
            "_http",
            "_is_chunked",
            "_is_ended",
            "_is_last",
            "_number",
        ),
        *("_is_lasting", "_is_reading", "_reception", "_request", "_service", "_unread"),
        *("companion", "stream"),
    )

    def __init__(self, reception: Reception, poll: Poll, fd: int) -> None:
        """Take over a connected, non-blocking socket of which nothing was read.

        Raises:
            OSError: the socket cannot be watched; the caller still owns it.
        """
        self._reception = reception
        self.stream = Stream(poll, fd, self)
        self._number = next(_NUMBERS)
        self._service = ""
        self._unread = b""
        self._http: h11.Connection | None = None
        self._request: Request | None = None
        self._body = bytearray()
        self._chunks = 0
        self._held = 0
        self._exchange: Exchange | None = None
        self._is_reading = False
        # The connection closes after this request; the peer has shut down its sending side.
        self._is_last = False
        self._is_ended = False
        # A streamed response: whether it has a body, and whether that is chunked.
        self._is_lasting = False
        self._is_chunked = False
        self.companion: Companion | None = None
        self._set_deadline(reception.limits.greeting_s)

    # Interface for the stream.

    def received(self, data: bytes) -> None:
        """Handle received bytes."""
        self._unread += data
        exchange = self._exchange
        if exchange is None:
            self.go_on()
        elif len(self._unread) <= self._reception.limits.greeting_bytes:
            # Pipelined requests are buffered up to a limit.
            return
        elif exchange.is_begun:
            # A streamed response may never end, so the rest would never be read.
            self.stream.close()
        else:
            self.stream.pause()

    def ended(self) -> None:
        """Called when the peer sends no more; pending requests are still answered."""
        exchange = self._exchange
        self._is_ended = True
        if exchange is None:
            self._part()
        elif exchange.is_begun or exchange.is_held:
            # A client of a streamed or held response has hung up.
            self.stream.close()

    def drained(self) -> None:
        """Called when the stream has room again."""
        if self._exchange is not None and self._exchange.on_room is not None:
            self._exchange.on_room()

    def late(self) -> None:
        """Called at the deadline: refuse an incomplete request, close an idle connection."""
        if self._is_last or (not self._unread and self._http is None):
            self.stream.close()
        else:
            self._reception.refused("TooSlow")
            self._refuse(BadRequest(HTTPStatus.REQUEST_TIMEOUT, "the request took too long"))

    def is_ours(self, data: bytes) -> bool:
        """Return whether the next request is for this service; if not, pass the connection on."""
        if self._reception.is_ours(data):
            return True
        fd = self.stream.release()
        self._reception.left(self)
        self._dismiss()
        self._reception.pass_on(fd)
        return False

    def lost(self) -> None:
        """Called when the connection is lost: notify the pending exchange."""
        exchange, self._exchange = self._exchange, None
        self._forget()
        self._reception.left(self)
        if exchange is not None:
            exchange.is_over = True
            if exchange.on_lost is not None:
                exchange.on_lost()
        self._dismiss()

    # Interface for an exchange.

    @property
    def has_room(self) -> bool:
        """Return whether more may be sent now."""
        return self.stream.has_room

    def respond(self, status: int, headers: list[tuple[str, str]], body: bytes | None) -> None:
        """Send the head of a response, and its body if complete."""
        http = self._http
        if http is None:
            return
        if body is not None and status not in _NO_BODY:
            headers.append(("Content-Length", str(len(body))))
        if self._has_no_next:
            headers.append(("Connection", "close"))
        reason = HTTPStatus(status).phrase
        response = h11.Response(status_code=status, headers=headers, reason=reason)
        sent = http.send(response) or b""
        if body and self._has_body:
            sent += http.send(h11.Data(data=body)) or b""
        if body is None:
            self._is_lasting = self._has_body
            self._is_chunked = http.their_http_version != b"1.0"
            self._is_last = self._is_last or http.their_state is not h11.DONE
            # Streamed responses need no parser: an idle one should use little memory.
            self._http = self._request = None
        self.stream.write(sent)
        if body is not None:
            self.complete()

    def piece(self, data: bytes) -> None:
        """Send the next piece of a streamed body."""
        if self._is_lasting and data:
            self.stream.write(b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked else data)

    def complete(self) -> None:
        """Called at the end of the response: await the next request, or close."""
        http = self._http
        if http is not None:
            self.stream.write(http.send(h11.EndOfMessage()) or b"")
            self._is_last = self._has_no_next or http.our_state is not h11.DONE
        elif self._is_lasting and self._is_chunked:
            self.stream.write(b"0\r\n\r\n")
        self._is_lasting = False
        self._http = self._request = self._exchange = None
        self._body.clear()
        if self._is_last:
            self._part()
            return
        self._set_deadline(IDLE_S)
        if self._is_reading:
            return
        self.stream.resume()
        if self._unread:
            # The answer may have been given within a turn.
            self._defer()
        else:
            self.stream.look_first()

    def led_to(self, service: str) -> str:
        """Return the service of this connection: the first that a request named."""
        self._service = self._service or service
        return self._service

    def close(self) -> None:
        """Close at once."""
        self.stream.close()

    def drain(self, within_s: float) -> None:
        """Finish the current request and take no other; an incomplete one gets this long."""
        self._is_last = True
        if self._exchange is None and not self._http:
            self._part()
        elif self._exchange is None:
            self._set_deadline(within_s)

    def hand_over(self) -> bytes:
        """Detach from the stream, for another handler; return the unread bytes."""
        unread = self._unread
        self._exchange = None
        self._forget()
        self._dismiss()
        self.stream.deadline_ns = 0
        self._reception.left(self)
        return unread

    # Requests.

    def go_on(self) -> None:
        """Parse and handle requests as far as possible; the next one waits for the response."""
        if self._is_reading or self.stream.talk is not self:
            return
        self._is_reading = True
        self.stream.resume()
        try:
            for _ in range(AT_ONCE_MAX):
                if not self._take_request():
                    self._weigh(len(self._unread) + len(self._body))
                    if not self._unread and self._http is None:
                        # A browser uses one connection for all services of a gateway.
                        self.stream.look_first()
                    break
            else:
                if self._unread:
                    self._defer()
                    return
            if self._is_ended and self._exchange is None and self.stream.talk is self:
                self._part()
        except BadRequest as error:
            self._reception.refused("BadRequest")
            self._refuse(error)
        except h11.RemoteProtocolError as error:
            self._reception.refused("BadRequest")
            # h11's text may repeat bytes of the request.
            self._refuse(BadRequest(error.error_status_hint, "invalid HTTP request"))
        except Overloaded as error:
            self._reception.refused("Overloaded")
            self._refuse(BadRequest(HTTPStatus.SERVICE_UNAVAILABLE, str(error)))
        finally:
            self._is_reading = False

    def _take_request(self) -> bool:
        """Handle a request; False if none is complete yet, or the connection is closing."""
        if self._exchange is not None or self.stream.talk is not self or self._is_parting:
            return False
        if self._http is None and not self._begin():
            return False
        if not self._read_body():
            return False
        return self._exchange is None

    def _begin(self) -> bool:
        """Parse the head of a request; False if it is incomplete."""
        limits = self._reception.limits
        end = self._unread.find(_HEAD_END)
        if end > limits.greeting_bytes or (end < 0 and len(self._unread) > limits.greeting_bytes):
            raise BadRequest(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"the head of a request has at most {limits.greeting_bytes} bytes",
            )
        if end < 0:
            return False
        head = self._unread[: end + len(_HEAD_END)]
        check_head(head)
        self._unread = self._unread[len(head) :]
        http = h11.Connection(h11.SERVER, max(len(head), _CHUNK_HEAD_BYTES) + 1)
        http.receive_data(head)
        event = http.next_event()
        if not isinstance(event, h11.Request):
            raise BadRequest(HTTPStatus.BAD_REQUEST, "invalid HTTP request")
        self._http = http
        self._request = request_of(event)
        self._refuse_large(int(self._request.headers.get("content-length", "0")))
        self._chunks = 0
        self._set_deadline(limits.frame_s)
        return True

    def _read_body(self) -> bool:
        """Parse the body of a request and handle it; False if it is incomplete."""
        http, request = self._http, self._request
        if http is None or request is None:
            return False
        if self._unread:
            http.receive_data(self._unread)
            self._unread = b""
        while True:
            event = http.next_event()
            if isinstance(event, h11.Data):
                self._body += event.data
                self._chunks += event.chunk_start
                self._refuse_large(len(self._body))
                if self._chunks > CHUNKS_MAX + len(self._body) // CHUNK_BYTES:
                    raise BadRequest(HTTPStatus.BAD_REQUEST, "the chunks are too small")
            elif isinstance(event, h11.EndOfMessage):
                break
            elif event is h11.NEED_DATA:
                if http.they_are_waiting_for_100_continue:
                    go_on = h11.InformationalResponse(status_code=100, headers=[])
                    self.stream.write(http.send(go_on) or b"")
                return False
            else:
                raise BadRequest(HTTPStatus.BAD_REQUEST, "the body ended too early")
        # The rest belongs to the next request.
        self._unread = http.trailing_data[0]
        self.stream.deadline_ns = 0
        whole = replace(request, body=bytes(self._body), connection=self._number)
        self._exchange = Exchange(whole, self)
        self._reception.deal(self._exchange, self)
        return True

    def _refuse_large(self, size: int) -> None:
        limit = self._reception.limits.body_bytes
        if size > limit:
            raise BadRequest(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {limit} bytes"
            )

    @property
    def _has_body(self) -> bool:
        """Return whether the response may have a body."""
        return self._request is not None and self._request.method != "HEAD"

    @property
    def _has_no_next(self) -> bool:
        """Return whether no other request follows this one."""
        return self._is_last or (self._is_ended and not self._unread)

    @property
    def _is_parting(self) -> bool:
        return self._is_last and self._exchange is None and self._http is None

    def _refuse(self, error: BadRequest) -> None:
        """Send an error response and close."""
        body = error_body(error.as_error())
        head = (
            f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}\r\n"
            f"Content-Type: {JSON}\r\nX-Content-Type-Options: nosniff\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self.stream.write(head.encode() + body)
        self._part()

    def _part(self) -> None:
        """Flush, then close."""
        self._is_last = True
        self._forget()
        self._set_deadline(self._reception.limits.frame_s if self.stream.unsent else LINGER_S)
        self.stream.end()

    def _defer(self) -> None:
        """Continue with buffered requests in a later turn; read nothing before."""
        self.stream.pause()
        self._reception.later(self)

    def _forget(self) -> None:
        """Release all state of requests."""
        self._http = None
        self._unread = b""
        self._body.clear()
        self._weigh(0)

    def _dismiss(self) -> None:
        companion, self.companion = self.companion, None
        if companion is not None:
            companion.end()

    def _weigh(self, held: int) -> None:
        before, self._held = self._held, held
        if held != before:
            self._reception.weigh(before, held)

    def _set_deadline(self, seconds: float) -> None:
        self.stream.deadline_ns = self._reception.now_ns + int(seconds * _S)
