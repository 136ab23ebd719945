"""Answers HTTP requests on the gateway's own port, a request at a time.

A connection is kept for the next request, which the front looks at first: it may be for a service.
Everything is bounded: the request's head, the time for it and for its answer, how long a connection
is idle, and how many connections there are. What a page says comes from elsewhere.
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
from weft.gateway.front.rejections import Refusals
from weft.gateway.http.discovery import Headers, preflight, shared_with
from weft.gateway.http.page_auth import LENT, Keys, check_page
from weft.gateway.http.response import NO_BODY, Page, headers_of, refused
from weft.gateway.journal.lend import Request
from weft.transports.http.origins import UnknownHost, WebRules, is_here

_log = logging.getLogger(__name__)

REQUESTS_MAX = 256
TARGET_MAX_BYTES = 2048
_READ_BYTES = 4096
# A body that nobody asked for is read up to here: to hang up earlier would cut off the answer.
_LINGER_BYTES = 64 << 10
_LINGER_S = 1.0
# How long a connection without a request is kept.
IDLE_S = 60.0
_METHODS = {b"GET", b"HEAD"}


# Gives the page of a path and a query, or None if there is none.
Pages = Callable[[str, str], Awaitable[Page | None]]


class Lends(Protocol):
    """Whoever lends the journal."""

    @property
    def patterns(self) -> tuple[bytes, ...]:
        """The patterns of the journal."""

    async def lend(self, sock: socket.socket, request: Request) -> None:
        """Have a request answered; the connection is still the caller's to close."""


class Web:
    """The HTTP requests of one gateway; a task each."""

    def __init__(
        self,
        pages: Pages,
        refusals: Refusals,
        rules: WebRules,
        keys: Keys,
        lending: Lends | None = None,
    ) -> None:
        self._pages = pages
        self._keys = keys
        self._lending = lending
        self._refusals = refusals
        self._rules = rules
        self._loop = asyncio.get_running_loop()
        # With the socket of each: a task that is cancelled before its first step closes nothing.
        self._tasks: dict[asyncio.Task[None], socket.socket] = {}
        # Those that wait for their peer, oldest first: for its request, or for it to hang up.
        self._reading: dict[asyncio.Task[None], str] = {}
        self._lingering: dict[asyncio.Task[None], None] = {}
        # Those that have their answer and may ask for more, and where they go when they do.
        self._idle: dict[asyncio.Task[None], None] = {}
        self.on_request: Callable[[socket.socket, str], None] | None = None
        self._is_closing = False
        self.answered = 0
        self.change(4096, 5.0)

    def change(self, limit_bytes: int, limit_s: float) -> None:
        """Hold requests to these limits from now on."""
        self._limit_bytes = limit_bytes
        self._limit_s = limit_s

    def take(self, sock: socket.socket, peer: str) -> None:
        """Own a connection that has sent the beginning of a request."""
        if len(self._tasks) >= REQUESTS_MAX and not self._crowd_out():
            self._refuse(peer)
            sock.close()
            return
        task = self._loop.create_task(self._serve(sock, peer))
        self._tasks[task] = sock
        self._reading[task] = peer
        task.add_done_callback(self._done)

    async def close(self) -> None:
        """Let the requests that are being answered end, for a moment; then end them."""
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
        exchange = Exchange(sock, self._limit_bytes)
        try:
            async with asyncio.timeout(2 * self._limit_s):
                page = await self._answer(exchange, peer)
                if isinstance(page, Request):
                    page = await self._lend(exchange, page, peer)
                    if page is None:
                        # Somebody else answers, and ends the connection.
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

    def _is_last(self, page: Page) -> bool:
        """Return whether a connection ends with this answer, whatever its client prefers."""
        is_refused = page.status >= HTTPStatus.BAD_REQUEST and page.status != HTTPStatus.NOT_FOUND
        return is_refused or self._is_closing or self.on_request is None

    async def _keep(self, sock: socket.socket, peer: str) -> None:
        """Wait for the next request, and have the front see who answers it."""
        task = asyncio.current_task()
        if task is None or self.on_request is None:
            return
        self._idle[task] = None
        async with asyncio.timeout(IDLE_S):
            await _readable(self._loop, sock)
        self._idle.pop(task, None)
        if sock.recv(1, socket.MSG_PEEK):
            self.on_request(socket.socket(fileno=sock.detach()), peer)

    async def _lend(self, exchange: "Exchange", request: Request, peer: str) -> Page | None:
        """Pass a request for the journal on; the page that says why not, or None."""
        if self._lending is None:
            return refused(404, NotKnown("this gateway keeps no journal"))
        try:
            await self._lending.lend(exchange.sock, request)
        except Overloaded as error:
            self._refusals.count(error, peer)
            return refused(503, error)
        self.answered += 1
        return None

    async def _answer(self, exchange: "Exchange", peer: str) -> Page | Request | None:
        """Read the request and find its page; None if there is nobody to answer."""
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
                return Page(204, "", headers=(*shared, *preflight(path)))
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

    def _refusal(self, request: h11.Request, peer: str) -> Page | None:
        """The page that says what is wrong with a request; None if nothing is."""
        path = request.target.partition(b"?")[0].decode("latin-1")
        is_asking_first = request.method == b"OPTIONS" and preflight(path)
        if request.method not in _METHODS and not is_asking_first:
            return refused(405, BadOption("only GET and HEAD"))
        if len(request.target) > TARGET_MAX_BYTES:
            return refused(414, FrameTooBig(f"a target has at most {TARGET_MAX_BYTES} bytes"))
        hosts = [value.decode("latin-1") for name, value in request.headers if name == b"host"]
        # Browsers always name the host; what does not is no browser that was lured here.
        if hosts and not is_here(hosts[0], self._rules.hosts):
            error = UnknownHost(f"this gateway does not go by the name {shortened(hosts[0])}")
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
        """Give up one that makes us wait; False if there is none, and everybody is being answered.

        Those who have their answer come first, then those who dawdle: neither may keep out others.
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


class Exchange:
    """One request and its answer on one connection."""

    def __init__(self, sock: socket.socket, limit_bytes: int) -> None:
        self._loop = asyncio.get_running_loop()
        self.sock = sock
        self._http = h11.Connection(h11.SERVER, limit_bytes)
        self._is_head = False

    async def request(self) -> h11.Request | None:
        """The head of the request; None if the peer left before it was complete.

        Raises:
            h11.RemoteProtocolError: it is not HTTP, or too long.
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
        """The status that says what is wrong with what came."""
        # h11 says 431 for a head that is too long, even if it is all one target.
        is_target = b"\n" not in self._http.trailing_data[0]
        return 414 if error.error_status_hint == 431 and is_target else error.error_status_hint

    async def send(self, page: Page, *, is_last: bool) -> bool:
        """Answer; return whether the connection can be kept for another request."""
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
        """Return whether nothing but the request has come: neither a body nor another request."""
        try:
            is_end = isinstance(self._http.next_event(), h11.EndOfMessage)
        except h11.RemoteProtocolError:
            return False
        return is_end and not self._http.trailing_data[0]

    async def linger(self) -> None:
        """Wait for the peer to hang up first; whoever calls bounds the time."""
        self.sock.shutdown(socket.SHUT_WR)
        left = _LINGER_BYTES
        while left > 0 and (data := await self._loop.sock_recv(self.sock, _READ_BYTES)):
            left -= len(data)


async def _readable(loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
    """Wait until something has come, and take none of it."""
    came = asyncio.Event()
    descriptor = sock.fileno()
    loop.add_reader(descriptor, came.set)
    try:
        await came.wait()
    finally:
        loop.remove_reader(descriptor)


def _lent(request: h11.Request, target: str, key: Key | None, peer: str) -> Request:
    """What the library is told of a request."""
    holder = "" if key is None else f"key {key.id}"
    is_head = request.method == b"HEAD"
    return Request(target, _header(request, b"range"), is_head, holder, peer)


def _headers(request: h11.Request) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}


def _header(request: h11.Request, name: bytes) -> str:
    found = [value.decode("latin-1") for each, value in request.headers if each == name]
    return found[0] if found else ""
