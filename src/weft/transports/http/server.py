"""What all doors for HTTP of one service share: who is there, what is allowed, who answers what."""

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
from weft.transports.adapter_peer import Seat, Speaker
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
# The beginning of a request, as far as it tells who answers it.
_TARGET = re.compile(rb"[A-Z]+ /([^/? ]*)(?:/([^/? ]*))?[/? ]")
_BEARER = "bearer "
# Stock clients of Bayeux ask for credentials, cookies and the like, though none count here.
_TRUSTED = (("Access-Control-Allow-Credentials", "true"), ("Vary", "Origin"))
_PREFLIGHT = (
    ("Access-Control-Allow-Methods", "GET, POST, OPTIONS"),
    (
        "Access-Control-Allow-Headers",
        "Authorization, Content-Type, Last-Event-ID, Pragma, Weft-Tunnel",
    ),
    ("Access-Control-Max-Age", "600"),
)
# What people call a key: none of them belongs where it is logged and kept.
_KEYS_IN_URLS = {"key", "api_key", "apikey", "access_token", "token", "password"}

# Answers a request, now or later; the connection is for those who speak on otherwise.
Answer = Callable[[Exchange, HttpDoor], None]


class House:
    """The doors of one service, and the connections that came in by them."""

    def __init__(self, turn: Turn, poll: Poll, rules: WebRules) -> None:
        self.turn = turn
        self.poll = poll
        self.rules = rules
        self.doors: dict[str, Answer] = {}
        self.shared = Shared()
        self.kept = KeptMemory()
        # What reply subjects end with: whoever can guess one can answer before the one asked.
        self.nonces = Nonces(os.urandom)
        # Takes a connection whose next request is for another service, if there is anybody.
        self.on_stranger: Callable[[int], None] | None = None
        # Called about once a second with the time.
        self.sweepers: list[Callable[[int], None]] = []
        # Connections that peers are told by which were there before them, and stay after.
        self.attached = 0
        self._streams: set[Stream] = set()
        self._is_empty = asyncio.Event()
        self._requesting: set[HttpDoor] = set()
        # Where the request that is dealt with comes from.
        self._address = ""
        self._refusal_log = RefusalLog(_log)

    @property
    def service(self) -> Service:
        """The service that they lead to."""
        return self.turn.service

    @property
    def limits(self) -> Limits:
        """What a request may take."""
        limits: Limits = self.service.limits
        return limits

    @property
    def now_ns(self) -> int:
        """The time on the clock that only goes forward."""
        return self.service.now_ns

    @property
    def connections(self) -> int:
        """How many connections there are that are no peers by themselves."""
        return len(self._requesting) - self.attached

    def adopt(self, fd: int) -> None:
        """Take over a connected, non-blocking socket that speaks HTTP, of which nothing was read.

        Raises:
            OSError: the socket cannot be watched; it is still the caller's.
        """
        door = HttpDoor(self, self.poll, fd)
        self._requesting.add(door)
        self.watch(door.stream)

    def watch(self, stream: Stream) -> None:
        """Mind the deadline of a stream until forget()."""
        self._streams.add(stream)

    def forget(self, stream: Stream) -> None:
        """A stream is closed."""
        self._streams.discard(stream)
        if not self._streams:
            self._is_empty.set()

    def left(self, door: HttpDoor) -> None:
        """A connection is closed, or speaks on otherwise: then whoever does watches it again."""
        self._requesting.discard(door)
        self.forget(door.stream)

    def is_ours(self, data: bytes) -> bool:
        """Say if a request that begins like this is for this service, as far as it tells."""
        target = _TARGET.match(data)
        if target is None or self.on_stranger is None:
            return True
        service, door = target[1].decode("latin-1"), (target[2] or b"").decode("latin-1")
        return service == self.service.name and door in self.doors

    def pass_on(self, fd: int) -> None:
        """Give a connection to whoever takes strangers."""
        if self.on_stranger is not None:
            self.on_stranger(fd)

    def refused(self, error_name: str) -> None:
        """Count what was refused."""
        self.service.count_refused(error_name)

    def weigh(self, before: int, now: int) -> None:
        """Count how much of what is not complete is held, whatever it came in by.

        Raises:
            Overloaded: all of it together is too much; it counts all the same.
        """
        service = self.service
        service.unfinished_bytes += now - before
        if now > before and service.unfinished_bytes > UNFINISHED_BYTES:
            raise Overloaded(f"over {UNFINISHED_BYTES} bytes of unfinished frames are waiting")

    def later(self, door: HttpDoor) -> None:
        """Let a connection go on in a turn to come."""
        self.turn.later(partial(self._go_on, door))

    def deal(self, exchange: Exchange, door: HttpDoor) -> None:
        """Answer a request, now or later."""
        request = exchange.request
        try:
            check_page(request.headers, self.rules)
        except WeftError as error:
            self.refused(type(error).__name__)
            # The page that it came from learns nothing: only the log can tell the operator.
            self._refusal_log.add(error, {})
            exchange.refuse(error)
            return
        # A decoy has no name: each of its connections leads where its first request says.
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
        # Of those who take a seat while this request is dealt with.
        self._address = door.stream.address
        try:
            self.doors[request.door](exchange, door)
        except WeftError as error:
            self.refused(type(error).__name__)
            exchange.refuse(error)

    def seat(self, speaker: Speaker) -> Seat:
        """A place for a newcomer, not greeted yet."""
        seat = Seat(self.turn, speaker, secrets.randbits(_TOKEN_BITS), self.nonces)
        seat.peer.address = self._address
        return seat

    def greet(self, seat: Seat, request: Request, client: str) -> None:
        """Let a newcomer in by the key or the ticket that its request shows.

        Raises:
            WeftError: it is not let in, and its seat is gone.
        """
        name = request.query.get("name", "")
        key, ticket = bearer(request), request.query.get("ticket", "")
        seat.say(greeting(self.service.name, client, name=name, key=key, ticket=ticket))
        if not seat.peer.is_greeted:
            error = seat.peer.error or BadKey("the greeting was refused")
            seat.end(error)
            raise error

    def charge(self, peer: Peer, error: WeftError) -> None:
        """Count what was refused before it was a frame, and let it cost as much as one."""
        self.refused(type(error).__name__)
        self.pinged(peer)

    def pinged(self, peer: Peer, credit: int = 1) -> None:
        """Let a ping cost as much as a frame, and more work accordingly."""
        try:
            spend(peer, credit)
        except ControlFlood as flood:
            end_with(peer, flood)

    def sweep(self) -> None:
        """Do what is due; called about once a second."""
        now_ns = self.now_ns
        for stream in [each for each in self._streams if 0 < each.deadline_ns < now_ns]:
            # Ending one may have ended another.
            if stream.is_open:
                stream.talk.late()
        for sweeper in self.sweepers:
            sweeper(now_ns)

    def drain(self, within_s: float) -> None:
        """Take no further requests, and close what waits for one; what has begun must be quick."""
        for door in list(self._requesting):
            door.drain(within_s)

    def end_stalled(self, oldest_ns: int) -> None:
        """Close connections that have taken nothing of what waits for them since a time."""
        for stream in list(self._streams):
            if stream.is_stalled(oldest_ns, self.now_ns):
                stream.close()

    async def emptied(self) -> None:
        """Wait until every connection is closed."""
        while self._streams:
            self._is_empty.clear()
            await self._is_empty.wait()

    def close(self) -> None:
        """End every connection, at once."""
        for stream in list(self._streams):
            stream.close()

    def _go_on(self, door: HttpDoor) -> None:
        try:
            door.go_on()
        except Exception:
            # As the poll does: a fault of ours ends the connection that it came up in.
            _log.exception("a connection is given up")
            door.stream.give_up(InternalError("the gateway failed"))

    def _problem(self, request: Request, named: str) -> tuple[int, WeftError] | None:
        """What is wrong with a request, whatever it asks for."""
        if request.service != named:
            return 421, NoSuchService(f"this connection leads to service {named!r}")
        if request.door not in self.doors:
            known = ", ".join(sorted(filter(str.isalpha, self.doors)))
            return 404, NotKnown(f"there is no such door; a service has {known}")
        if _KEYS_IN_URLS & set(request.query):
            text = "a key in a URL is kept in logs: send it as Authorization: Bearer"
            return 400, BadOption(text)
        return None


def bearer(request: Request) -> str:
    """The key that a request shows; empty if it shows none."""
    shown = request.headers.get("authorization", "")
    return shown[len(_BEARER) :].strip() if shown.lower().startswith(_BEARER) else ""


def is_on(request: Request, name: str) -> bool:
    """Say if a parameter is on.

    Raises:
        BadOption: it is neither on nor off.
    """
    value = request.query.get(name, "0")
    if value not in ("0", "1", "false", "true"):
        raise BadOption(f"{name} is 0 or 1")
    return value in ("1", "true")


def is_one_of(exchange: Exchange, *methods: str) -> bool:
    """Say if a request has one of these methods; if not, that is answered."""
    if exchange.request.method in methods:
        return True
    allowed = ", ".join(methods)
    error = BadOption(f"{exchange.request.method[:16]} is not possible here, only {allowed}")
    exchange.refuse(error, HTTPStatus.METHOD_NOT_ALLOWED, (("Allow", allowed),))
    return False
