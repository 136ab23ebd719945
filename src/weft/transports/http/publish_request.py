"""Plain HTTP for scripts: `publish` and `request`, with one peer per connection and key.

The peer is kept while requests on its connection show the same key: a script that publishes a
thousand times over one connection authenticates once.
"""

import asyncio

from weft.errors import BadMessage, BadOption, TimedOut, WeftError
from weft.transports.http.bodies import body_of, message_of
from weft.transports.http.connection import HttpDoor
from weft.transports.http.exchange import JSON, Exchange, Request
from weft.transports.http.server import HttpServer, bearer, is_one_of
from weft.transports.json.datagrams import identity
from weft.transports.json.paths import subject_of
from weft.wire.frame_splitting import each_frame, error_in
from weft.wire.frames import Flag, Frame, Kind, encode, parse
from weft.wire.request_failure import failure_in, is_failure

TIMEOUT_S = 5.0
TIMEOUT_MAX_S = 300.0

_OF_GATEWAY = b"_WEFT."


class HttpCaller:
    """Peer of one connection; handles one request at a time."""

    def __init__(self, house: HttpServer, request: Request) -> None:
        """Authenticate.

        Raises:
            WeftError: the peer was refused.
        """
        self.proof = proof_of(request)
        self._exchange: Exchange | None = None
        self._reply = b""
        self._timer: asyncio.TimerHandle | None = None
        self._nonces = house.nonces
        self._is_question = False
        self.is_over = False
        self._is_leaving = False
        self._seat = house.seat(self)
        house.greet(self._seat, request, "http")

    def publish(self, exchange: Exchange) -> None:
        """Publish the body of a request; answer with the message's id once it is accepted.

        Raises:
            UsageError: invalid path or body.
        """
        self._say(exchange, Flag.ANSWER, b"")

    def request(self, exchange: Exchange) -> None:
        """Send the body of an HTTP request as a request; answer with the response to it.

        Raises:
            UsageError: invalid path, body or timeout.
        """
        timeout_s = timeout_of(exchange.request)
        self._say(exchange, Flag.REQUEST, self._seat.peer.inbox + self._nonces.take())
        self._timer = asyncio.get_running_loop().call_later(timeout_s, self._late, timeout_s)

    def end(self) -> None:
        """Called when the connection is closed."""
        self._seat.end()

    # Interface of an adapter.

    @property
    def has_room(self) -> bool:
        """Return True: only answers are sent, so there is always room."""
        return True

    def tell(self, frames: bytes) -> None:
        """Answer the pending exchange."""
        for data in each_frame(frames):
            frame = parse(data)
            if frame.kind == Kind.PING:
                # The client is alive while its connection is.
                self._seat.heard()
            elif frame.kind == Kind.GOODBYE:
                self._is_leaving = True
            elif frame.kind == Kind.OK:
                self._answer(b'{"id":"%s"}\n' % identity(frame).encode(), JSON)
            elif frame.kind == Kind.ERROR:
                self._refuse(error_in(frame))
            elif frame.kind == Kind.MESSAGE and self._is_answer(frame):
                self._answer_with(data)
        if self._is_leaving and self._exchange is None:
            self._seat.end()

    def rest(self) -> None:
        """Do nothing: no input is read before the answer."""

    def go_on(self) -> None:
        """Do nothing."""

    def over(self, error: WeftError | None) -> None:
        """Called when the peer has left."""
        self.is_over = True
        if error is not None:
            self._refuse(error)

    def _say(self, exchange: Exchange, flags: Flag, reply: bytes) -> None:
        request = exchange.request
        body, kind = message_of(request.body, request.headers.get("content-type", ""))
        subject = subject_of("/" + "/".join(request.path))
        self._exchange = exchange
        self._reply = reply
        self._is_question = subject.startswith(_OF_GATEWAY)
        self._seat.say(encode(Kind.MESSAGE, subject, body, reply, flags | kind))

    def _is_answer(self, frame: Frame) -> bool:
        """Return whether a message answers the request; `_WEFT.` requests only the gateway may."""
        is_expected = frame.subject == self._reply
        return is_expected and (not self._is_question or frame.flags & Flag.FROM_GATEWAY != 0)

    def _answer_with(self, data: bytes) -> None:
        if is_failure(data):
            self._refuse(failure_in(data))
            return
        try:
            body, kind = body_of(data)
        except BadMessage as error:
            self._refuse(error)
        else:
            self._answer(body, kind)

    def _answer(self, body: bytes, kind: str) -> None:
        if (exchange := self._taken()) is not None:
            exchange.answer(200, body, kind)

    def _refuse(self, error: WeftError) -> None:
        if (exchange := self._taken()) is not None:
            exchange.refuse(error)

    def _late(self, timeout_s: float) -> None:
        self._refuse(TimedOut(f"no answer came within {timeout_s:g} s"))

    def _taken(self) -> Exchange | None:
        """Return the pending exchange, if any, and clear it with its timer."""
        exchange, self._exchange = self._exchange, None
        self._reply = b""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return exchange


class Callers:
    """`/{service}/publish/…` and `/{service}/request/…`."""

    def __init__(self, house: HttpServer) -> None:
        self._house = house

    def publish(self, exchange: Exchange, door: HttpDoor) -> None:
        """Handle a `publish` request."""
        if is_one_of(exchange, "POST", "PUT"):
            self._caller(exchange, door).publish(exchange)

    def request(self, exchange: Exchange, door: HttpDoor) -> None:
        """Handle a `request` request, which waits for its response."""
        if is_one_of(exchange, "POST", "GET"):
            self._caller(exchange, door).request(exchange)

    def _caller(self, exchange: Exchange, door: HttpDoor) -> HttpCaller:
        request = exchange.request
        caller = door.companion
        if isinstance(caller, HttpCaller):
            if caller.proof == proof_of(request) and not caller.is_over:
                return caller
            caller.end()
        door.companion = None
        fresh = HttpCaller(self._house, request)
        door.companion = fresh
        return fresh


def proof_of(request: Request) -> tuple[str, str, str]:
    """Return the credentials of a request: key, ticket and name."""
    return bearer(request), request.query.get("ticket", ""), request.query.get("name", "")


def timeout_of(request: Request) -> float:
    """Return how many seconds to wait for a response.

    Raises:
        BadOption: the parameter is not a number of seconds within its limits.
    """
    text = request.query.get("timeout", "")
    if not text:
        return TIMEOUT_S
    try:
        seconds = float(text)
    except ValueError as error:
        raise BadOption(f"timeout {text[:20]!r} is not a number of seconds") from error
    if not 0 < seconds <= TIMEOUT_MAX_S:
        raise BadOption(f"timeout {seconds:g} s must be over 0 and at most {TIMEOUT_MAX_S:g} s")
    return seconds
