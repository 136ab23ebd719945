"""HTTP server of a gateway's own port: one request per connection at a time.

A connection stays open for the next request, which the front classifies first: it may be for a
service. Bounds: the size of a request's head, the time for a request and its response, idle time,
and the number of connections. The pages are made elsewhere.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Protocol

import h11

from weft.broker.auth.keys import Key
from weft.errors import (
    BadKey,
    BadOption,
    FrameTooBig,
    NotAllowed,
    NotKnown,
    Overloaded,
    TooSlow,
    shortened,
)
from weft.gateway.front.rejections import Rejections
from weft.gateway.http.discovery import Headers, preflight, shared_with
from weft.gateway.http.page_auth import LENT, KeyProvider, check_page
from weft.gateway.http.response import NO_BODY, PageResponse, headers_of, refused
from weft.gateway.journal.lend import FileRequest
from weft.transports.http.origins import UnknownHost, WebRules, is_here

_log = logging.getLogger(__name__)

REQUESTS_MAX = 256
TARGET_MAX_BYTES = 2048
_READ_BYTES = 4096
# An unexpected body is read up to this size: an earlier close would cut off the response.
_LINGER_BYTES = 64 << 10
_LINGER_S = 1.0
# Time for which a connection without a request is kept.
IDLE_S = 60.0
_METHODS = {b"GET", b"HEAD"}


# Returns the page of a path and a query, or None if there is none.
Pages = Callable[[str, str], Awaitable[PageResponse | None]]


class Lends(Protocol):
    """File server of the journal."""

    @property
    def patterns(self) -> tuple[bytes, ...]:
        """Patterns of the journal."""

    async def lend(self, sock: socket.socket, request: FileRequest) -> None:
        """Answer a request on a socket that the caller closes afterwards."""


class GatewayHttpServer:
    """HTTP requests of one gateway, one task each."""

    def __init__(
        self,
        pages: Pages,
        refusals: Rejections,
        rules: WebRules,
        keys: KeyProvider,
        lending: Lends | None = None,
    ) -> None:
        self._pages = pages
        self._keys = keys
        self._lending = lending
        self._refusals = refusals
        self._rules = rules
        self._loop = asyncio.get_running_loop()
        # With the socket of each: a task cancelled before its first step does not close it.
        self._tasks: dict[asyncio.Task[None], socket.socket] = {}
        # Tasks that wait for a request, and tasks that linger until the peer closes; oldest first.
        self._reading: dict[asyncio.Task[None], str] = {}
        self._lingering: dict[asyncio.Task[None], None] = {}
        # Tasks of keep-alive connections, and the callback for their next request.
        self._idle: dict[asyncio.Task[None], None] = {}
        self.on_request: Callable[[socket.socket, str], None] | None = None
        self._is_closing = False
        self.answered = 0
        self.change(4096, 5.0)

    def change(self, limit_bytes: int, limit_s: float) -> None:
        """Set the limits of requests."""
        self._limit_bytes = limit_bytes
        self._limit_s = limit_s

    def take(self, sock: socket.socket, peer: str) -> None:
        """Take over a connection that sent the beginning of a request."""
        if len(self._tasks) >= REQUESTS_MAX and not self._crowd_out():
            self._refuse(peer)
            sock.close()
            return
        task = self._loop.create_task(self._serve(sock, peer))
        self._tasks[task] = sock
        self._reading[task] = peer
        task.add_done_callback(self._done)

    async def close(self) -> None:
        """Give running requests _LINGER_S to finish, then cancel them."""
        self._is_closing = True
        for task in list(self._idle):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_LINGER_S)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _serve(self, sock: socket.socket, peer: str) -> None:
        exchange = PageExchange(sock, self._limit_bytes)
        try:
            async with asyncio.timeout(2 * self._limit_s):
                page = await self._answer(exchange, peer)
                if isinstance(page, FileRequest):
                    page = await self._lend(exchange, page, peer)
                    if page is None:
                        # The file server responds and closes the connection.
                        return
                is_kept = False
                if page is not None:
                    is_kept = await exchange.send(page, is_last=self._is_last(page))
                    self.answered += 1
            if is_kept:
                await self._keep(sock, peer)
                return
            self._begin_lingering()
            async with asyncio.timeout(_LINGER_S):
                await exchange.linger()
        except (OSError, TimeoutError) as error:
            _log.debug("HTTP request ended: %s", error, extra={"peer": peer})

    def _is_last(self, page: PageResponse) -> bool:
        """Return whether the connection closes after this response regardless of keep-alive."""
        is_refused = page.status >= HTTPStatus.BAD_REQUEST and page.status != HTTPStatus.NOT_FOUND
        return is_refused or self._is_closing or self.on_request is None

    async def _keep(self, sock: socket.socket, peer: str) -> None:
        """Wait for the next request and return the connection to the front."""
        task = asyncio.current_task()
        if task is None or self.on_request is None:
            return
        self._idle[task] = None
        async with asyncio.timeout(IDLE_S):
            await _readable(self._loop, sock)
        self._idle.pop(task, None)
        if sock.recv(1, socket.MSG_PEEK):
            self.on_request(socket.socket(fileno=sock.detach()), peer)

    async def _lend(
        self, exchange: "PageExchange", request: FileRequest, peer: str
    ) -> PageResponse | None:
        """Pass a request to the journal's file server; return the page of an error, or None."""
        if self._lending is None:
            return refused(404, NotKnown("this gateway keeps no journal"))
        try:
            await self._lending.lend(exchange.sock, request)
        except Overloaded as error:
            self._refusals.count(error, peer)
            return refused(503, error)
        self.answered += 1
        return None

    async def _answer(
        self, exchange: "PageExchange", peer: str
    ) -> PageResponse | FileRequest | None:
        """Read the request and find its page; None if the peer closed the connection."""
        try:
            async with asyncio.timeout(self._limit_s):
                request = await exchange.request()
        except TimeoutError:
            slow = TooSlow(f"no whole request after {self._limit_s} s")
            self._refusals.count(slow, peer)
            return refused(408, slow)
        except h11.RemoteProtocolError as error:
            return refused(exchange.status_of(error), BadOption(str(error)))
        finally:
            self._end_reading()
        if request is None:
            return None
        refusal = self._refusal(request, peer)
        if refusal is not None:
            return refusal
        target = request.target.decode("latin-1")
        path, _, query = target.partition("?")
        shared: Headers = ()
        try:
            shared = shared_with(path, _headers(request), self._rules.origins)
            if request.method == b"OPTIONS":
                return PageResponse(204, "", headers=(*shared, *preflight(path)))
            kept = () if self._lending is None else self._lending.patterns
            key = check_page(self._keys, path, _header(request, b"authorization"), query, kept)
        except (BadKey, NotAllowed) as error:
            self._refusals.count(error, peer)
            status = 401 if isinstance(error, BadKey) else 403
            return replace(refused(status, error), headers=shared)
        if path.startswith(LENT):
            return _lent(request, target, key, peer)
        page = await self._pages(path, query) or refused(
            404, NotKnown("there is no such page; see /")
        )
        if shared:
            return replace(page, headers=shared)
        return page.for_client(_headers(request)) if page.tag else page

    def _refusal(self, request: h11.Request, peer: str) -> PageResponse | None:
        """Return the page of an invalid request; None if the request is valid."""
        path = request.target.partition(b"?")[0].decode("latin-1")
        is_asking_first = request.method == b"OPTIONS" and preflight(path)
        if request.method not in _METHODS and not is_asking_first:
            return refused(405, BadOption("only GET and HEAD"))
        if len(request.target) > TARGET_MAX_BYTES:
            return refused(414, FrameTooBig(f"a target has at most {TARGET_MAX_BYTES} bytes"))
        hosts = [value.decode("latin-1") for name, value in request.headers if name == b"host"]
        # Browsers always send Host; without it this is not a DNS rebinding attack on a browser.
        if hosts and not is_here(hosts[0], self._rules.hosts):
            error = UnknownHost(f"this gateway is not known by the host name {shortened(hosts[0])}")
            self._refusals.count(error, peer)
            return refused(421, UnknownHost(f"{error}: see web.hosts"))
        if not request.target.startswith(b"/"):
            return refused(400, BadOption("a target starts with '/'"))
        return None

    def _end_reading(self) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._reading.pop(task, None)

    def _begin_lingering(self) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._lingering[task] = None

    def _crowd_out(self) -> bool:
        """Cancel a connection that waits for its peer; return False if all are being answered.

        Answered connections go first, then slow requests: neither may keep out new connections.
        """
        answered = self._lingering or self._idle
        if answered:
            oldest = next(iter(answered))
            del answered[oldest]
        elif self._reading:
            oldest = next(iter(self._reading))
            self._refuse(self._reading.pop(oldest))
        else:
            return False
        oldest.cancel()
        return True

    def _refuse(self, peer: str) -> None:
        self._refusals.count(Overloaded(f"{REQUESTS_MAX} HTTP requests are the limit"), peer)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task).close()
        self._reading.pop(task, None)
        self._lingering.pop(task, None)
        self._idle.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("an HTTP request failed", exc_info=error)


class PageExchange:
    """One request and its response on one connection."""

    def __init__(self, sock: socket.socket, limit_bytes: int) -> None:
        self._loop = asyncio.get_running_loop()
        self.sock = sock
        self._http = h11.Connection(h11.SERVER, limit_bytes)
        self._is_head = False

    async def request(self) -> h11.Request | None:
        """Return the head of the request; None if the peer closed before it was complete.

        Raises:
            h11.RemoteProtocolError: Not HTTP, or too long.
        """
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.Request):
                self._is_head = event.method == b"HEAD"
                return event
            if event is not h11.NEED_DATA:
                return None
            self._http.receive_data(await self._loop.sock_recv(self.sock, _READ_BYTES))

    def status_of(self, error: h11.RemoteProtocolError) -> int:
        """Return the HTTP status for an invalid request."""
        # h11 suggests 431 for a head that is too long, even if it is all one target.
        is_target = b"\n" not in self._http.trailing_data[0]
        return 414 if error.error_status_hint == 431 and is_target else error.error_status_hint

    async def send(self, page: PageResponse, *, is_last: bool) -> bool:
        """Send the response; return whether the connection can be kept for another request."""
        body = page.gzipped or page.body.encode()
        is_clean = self._is_whole()
        headers = headers_of(page, len(body))
        if is_last or not is_clean:
            headers.append(("Connection", "close"))
        reason = HTTPStatus(page.status).phrase
        response = h11.Response(status_code=page.status, headers=headers, reason=reason)
        sent = self._http.send(response) or b""
        if not self._is_head and page.status not in NO_BODY:
            sent += self._http.send(h11.Data(data=body)) or b""
        sent += self._http.send(h11.EndOfMessage()) or b""
        await self._loop.sock_sendall(self.sock, sent)
        return is_clean and self._http.our_state is h11.DONE

    def _is_whole(self) -> bool:
        """Return whether only the request has arrived: neither a body nor another request."""
        try:
            is_end = isinstance(self._http.next_event(), h11.EndOfMessage)
        except h11.RemoteProtocolError:
            return False
        return is_end and not self._http.trailing_data[0]

    async def linger(self) -> None:
        """Wait for the peer to close first; the caller bounds the time."""
        self.sock.shutdown(socket.SHUT_WR)
        left = _LINGER_BYTES
        while left > 0 and (data := await self._loop.sock_recv(self.sock, _READ_BYTES)):
            left -= len(data)


async def _readable(loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
    """Wait until data has arrived, without reading it."""
    came = asyncio.Event()
    descriptor = sock.fileno()
    loop.add_reader(descriptor, came.set)
    try:
        await came.wait()
    finally:
        loop.remove_reader(descriptor)


def _lent(request: h11.Request, target: str, key: Key | None, peer: str) -> FileRequest:
    """Return the request as the journal's file server takes it."""
    holder = "" if key is None else f"key {key.id}"
    is_head = request.method == b"HEAD"
    return FileRequest(target, _header(request, b"range"), is_head, holder, peer)


def _headers(request: h11.Request) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}


def _header(request: h11.Request, name: bytes) -> str:
    found = [value.decode("latin-1") for each, value in request.headers if each == name]
    return found[0] if found else ""
