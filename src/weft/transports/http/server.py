"""HTTP server of one service: connections, endpoints, origin checks and authentication."""

import asyncio
import logging
import os
import re
import secrets
from collections.abc import Callable
from functools import partial
from http import HTTPStatus

from weft.broker.ingest import UNFINISHED_BYTES
from weft.broker.limits import Limits
from weft.broker.rate_limit import spend
from weft.broker.replies import end_with
from weft.broker.service import Peer, Service
from weft.errors import (
    BadKey,
    BadOption,
    ControlFlood,
    InternalError,
    NoSuchService,
    NotKnown,
    Overloaded,
    WeftError,
)
from weft.transports.adapter_peer import Adapter, AdapterPeer
from weft.transports.encode_cache import Shared
from weft.transports.http.connection import HttpDoor
from weft.transports.http.exchange import Exchange, Request
from weft.transports.http.origins import WebRules, check_page
from weft.transports.http.stream import Stream
from weft.transports.loop.poller import Poll
from weft.transports.loop.turn import Turn
from weft.transports.refusal_log import RefusalLog
from weft.transports.replay_memory import KeptMemory
from weft.wire.frame_splitting import greeting
from weft.wire.nonces import Nonces

_log = logging.getLogger(__name__)

_TOKEN_BITS = 64
# Start of a request line, as far as it names the service and the endpoint.
_TARGET = re.compile(rb"[A-Z]+ /([^/? ]*)(?:/([^/? ]*))?[/? ]")
_BEARER = "bearer "
# Bayeux clients ask for credentials mode, though neither cookies nor the like count here.
_TRUSTED = (("Access-Control-Allow-Credentials", "true"), ("Vary", "Origin"))
_PREFLIGHT = (
    ("Access-Control-Allow-Methods", "GET, POST, OPTIONS"),
    (
        "Access-Control-Allow-Headers",
        "Authorization, Content-Type, Last-Event-ID, Pragma, Weft-Tunnel",
    ),
    ("Access-Control-Max-Age", "600"),
)
# Common names of keys in URLs: none may be logged or stored.
_KEYS_IN_URLS = {"key", "api_key", "apikey", "access_token", "token", "password"}

# Handles a request, now or later; may take over the connection for another protocol.
Answer = Callable[[Exchange, HttpDoor], None]


class HttpServer:
    """HTTP endpoints of one service, and the connections to them."""

    def __init__(self, turn: Turn, poll: Poll, rules: WebRules) -> None:
        self.turn = turn
        self.poll = poll
        self.rules = rules
        self.doors: dict[str, Answer] = {}
        self.shared = Shared()
        self.kept = KeptMemory()
        # Random ends of reply subjects: a client that could guess one could forge an answer.
        self.nonces = Nonces(os.urandom)
        # Takes a connection whose next request is for another service, if set.
        self.on_stranger: Callable[[int], None] | None = None
        # Called about once a second with the time.
        self.sweepers: list[Callable[[int], None]] = []
        # Connections that tunnels send through: counted as peers by their tunnels.
        self.attached = 0
        self._streams: set[Stream] = set()
        self._is_empty = asyncio.Event()
        self._requesting: set[HttpDoor] = set()
        # Remote address of the request that is being handled.
        self._address = ""
        self._refusal_log = RefusalLog(_log)

    @property
    def service(self) -> Service:
        """The service of this server."""
        return self.turn.service

    @property
    def limits(self) -> Limits:
        """Limits of the service."""
        limits: Limits = self.service.limits
        return limits

    @property
    def now_ns(self) -> int:
        """Monotonic time of the current turn."""
        return self.service.now_ns

    @property
    def connections(self) -> int:
        """Return the number of connections that are not peers themselves."""
        return len(self._requesting) - self.attached

    def adopt(self, fd: int) -> None:
        """Take over a connected, non-blocking HTTP socket of which nothing was read.

        Raises:
            OSError: the socket cannot be watched; the caller still owns it.
        """
        door = HttpDoor(self, self.poll, fd)
        self._requesting.add(door)
        self.watch(door.stream)

    def watch(self, stream: Stream) -> None:
        """Check the deadline of a stream until forget()."""
        self._streams.add(stream)

    def forget(self, stream: Stream) -> None:
        """Called when a stream is closed."""
        self._streams.discard(stream)
        if not self._streams:
            self._is_empty.set()

    def left(self, door: HttpDoor) -> None:
        """Called when a connection is closed or upgraded; the new protocol then calls watch()."""
        self._requesting.discard(door)
        self.forget(door.stream)

    def is_ours(self, data: bytes) -> bool:
        """Return whether a request that begins with these bytes is for this service."""
        target = _TARGET.match(data)
        if target is None or self.on_stranger is None:
            return True
        service, door = target[1].decode("latin-1"), (target[2] or b"").decode("latin-1")
        return service == self.service.name and door in self.doors

    def pass_on(self, fd: int) -> None:
        """Pass a connection to the handler of requests for other services."""
        if self.on_stranger is not None:
            self.on_stranger(fd)

    def refused(self, error_name: str) -> None:
        """Count a refusal."""
        self.service.count_refused(error_name)

    def weigh(self, before: int, now: int) -> None:
        """Add the change of a connection's incomplete data, of any transport, to the total.

        Raises:
            Overloaded: the total is over UNFINISHED_BYTES; the change counts all the same.
        """
        service = self.service
        service.unfinished_bytes += now - before
        if now > before and service.unfinished_bytes > UNFINISHED_BYTES:
            raise Overloaded(f"over {UNFINISHED_BYTES} bytes of unfinished frames are waiting")

    def later(self, door: HttpDoor) -> None:
        """Schedule a connection's go_on() for a later turn."""
        self.turn.later(partial(self._go_on, door))

    def deal(self, exchange: Exchange, door: HttpDoor) -> None:
        """Handle a request, now or later."""
        request = exchange.request
        try:
            check_page(request.headers, self.rules)
        except WeftError as error:
            self.refused(type(error).__name__)
            # The page gets no details: only the log can help the operator.
            self._refusal_log.add(error, {})
            exchange.refuse(error)
            return
        # A decoy service has no name: the first request of a connection determines it.
        named = self.service.name or door.led_to(request.service)
        problem = self._problem(request, named)
        if problem is not None:
            status, refusal = problem
            self.refused("BadRequest")
            exchange.refuse(refusal, status)
            return
        origin = request.headers.get("origin", "")
        if origin in self.rules.origins and origin:
            exchange.extra = [("Access-Control-Allow-Origin", origin), *_TRUSTED]
        if request.method == "OPTIONS":
            exchange.answer(HTTPStatus.NO_CONTENT, headers=_PREFLIGHT)
            return
        # For adapter peers that join while this request is handled.
        self._address = door.stream.address
        try:
            self.doors[request.door](exchange, door)
        except WeftError as error:
            self.refused(type(error).__name__)
            exchange.refuse(error)

    def seat(self, speaker: Adapter) -> AdapterPeer:
        """Add an adapter peer that is not authenticated yet."""
        seat = AdapterPeer(self.turn, speaker, secrets.randbits(_TOKEN_BITS), self.nonces)
        seat.peer.address = self._address
        return seat

    def greet(self, seat: AdapterPeer, request: Request, client: str) -> None:
        """Authenticate an adapter peer by the key or the ticket of its request.

        Raises:
            WeftError: the peer was refused and has left.
        """
        name = request.query.get("name", "")
        key, ticket = bearer(request), request.query.get("ticket", "")
        seat.say(greeting(self.service.name, client, name=name, key=key, ticket=ticket))
        if not seat.peer.is_greeted:
            error = seat.peer.error or BadKey("authentication failed")
            seat.end(error)
            raise error

    def charge(self, peer: Peer, error: WeftError) -> None:
        """Count input that was refused before it became a frame, and charge it like one."""
        self.refused(type(error).__name__)
        self.pinged(peer)

    def pinged(self, peer: Peer, credit: int = 1) -> None:
        """Charge a ping like a frame, or an operation by its cost; ControlFlood disconnects."""
        try:
            spend(peer, credit)
        except ControlFlood as flood:
            end_with(peer, flood)

    def sweep(self) -> None:
        """Do periodic work; called about once a second."""
        now_ns = self.now_ns
        for stream in [each for each in self._streams if 0 < each.deadline_ns < now_ns]:
            # Closing one may have closed another.
            if stream.is_open:
                stream.talk.late()
        for sweeper in self.sweepers:
            sweeper(now_ns)

    def drain(self, within_s: float) -> None:
        """Take no further requests and close idle connections; started ones have `within_s`."""
        for door in list(self._requesting):
            door.drain(within_s)

    def end_stalled(self, oldest_ns: int) -> None:
        """Close connections whose socket has accepted nothing since the given time."""
        for stream in list(self._streams):
            if stream.is_stalled(oldest_ns, self.now_ns):
                stream.close()

    async def emptied(self) -> None:
        """Wait until every connection is closed."""
        while self._streams:
            self._is_empty.clear()
            await self._is_empty.wait()

    def close(self) -> None:
        """Close all connections at once."""
        for stream in list(self._streams):
            stream.close()

    def _go_on(self, door: HttpDoor) -> None:
        try:
            door.go_on()
        except Exception:
            # Like the poller: a bug closes only the connection that it occurred in.
            _log.exception("closed a connection after an unexpected error")
            door.stream.give_up(InternalError("the gateway failed"))

    def _problem(self, request: Request, named: str) -> tuple[int, WeftError] | None:
        """Return the status and error of a request with a wrong URL, or None."""
        if request.service != named:
            return 421, NoSuchService(f"this connection leads to service {named!r}")
        if request.door not in self.doors:
            known = ", ".join(sorted(filter(str.isalpha, self.doors)))
            return 404, NotKnown(f"no such endpoint; a service has {known}")
        if _KEYS_IN_URLS & set(request.query):
            text = "a key in a URL is kept in logs: send it as Authorization: Bearer"
            return 400, BadOption(text)
        return None


def bearer(request: Request) -> str:
    """Return the key of a request; empty without one."""
    shown = request.headers.get("authorization", "")
    return shown[len(_BEARER) :].strip() if shown.lower().startswith(_BEARER) else ""


def is_on(request: Request, name: str) -> bool:
    """Return whether a boolean parameter is set.

    Raises:
        BadOption: the value is not 0, 1, false or true.
    """
    value = request.query.get(name, "0")
    if value not in ("0", "1", "false", "true"):
        raise BadOption(f"{name} is 0 or 1")
    return value in ("1", "true")


def is_one_of(exchange: Exchange, *methods: str) -> bool:
    """Return whether a request has one of these methods; if not, answer with 405."""
    if exchange.request.method in methods:
        return True
    allowed = ", ".join(methods)
    error = BadOption(f"{exchange.request.method[:16]} is not allowed here, only {allowed}")
    exchange.refuse(error, HTTPStatus.METHOD_NOT_ALLOWED, (("Allow", allowed),))
    return False
