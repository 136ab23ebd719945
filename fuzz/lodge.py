"""The HTTP doors of one service without sockets or an event loop, for targets that speak at them.

The journal is a stand-in whose pages hold whatever the input says. Names that are drawn at random
are replaced in what comes out, so that both cores come to the same.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from fuzz.targets import Broken
from weft.broker.limits import Limits
from weft.broker.service import Peer, Service
from weft.errors import WeftError
from weft.gateway.requests.deferred import DeferredRequest
from weft.transports.http.exchange import Exchange, Request
from weft.transports.http.origins import WebRules
from weft.transports.http.server import HttpServer
from weft.transports.loop.turn import Turn
from weft.wire.message.message import Field, Message

_LIMITS = Limits(body_bytes=4096, subscriptions=64, requests=8, control_burst=256, flows=16)
_CALLBACKS_MAX = 10_000
_PAGES_MAX = 8


class Loop:
    """Callbacks in the order in which they were scheduled, run by hand."""

    def __init__(self) -> None:
        self._due: deque[Callable[[], None]] = deque()

    def call_soon(self, callback: Callable[..., None], *arguments: object) -> None:
        """Schedule a callback."""
        self._due.append(lambda: callback(*arguments))

    def run(self) -> None:
        """Run everything that is due, and what that schedules."""
        for _ in range(_CALLBACKS_MAX):
            if not self._due:
                return
            self._due.popleft()()
        raise Broken(f"there is still something to do after {_CALLBACKS_MAX} callbacks")


class Wire:
    """The connection of one HTTP answer, which it keeps."""

    has_room = True

    def __init__(self) -> None:
        self.status = 0
        self.body = b""
        self.is_over = False

    def respond(self, status: int, _headers: list[tuple[str, str]], body: bytes | None) -> None:
        """Keep the status, and the body if it is whole."""
        self.status = status
        self.body += body or b""
        self.is_over = body is not None

    def piece(self, data: bytes) -> None:
        """Keep more of the body."""
        self.body += data

    def complete(self) -> None:
        """Nothing follows."""
        self.is_over = True

    def close(self) -> None:
        """Nothing follows."""
        self.is_over = True


class _Faults(logging.Handler):
    """Keeps what is logged as a fault of our own: doors end the peer, and go on."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.found.append(logging.Formatter().format(record))


_FAULTS = _Faults()
logging.getLogger("weft").addHandler(_FAULTS)


class Lodge:
    """A service, its doors, and a journal whose pages hold these bytes."""

    def __init__(self, page: bytes) -> None:
        self.service = Service("default", "fuzz", 1, _LIMITS)
        self.loop = Loop()
        self._turn = Turn(self.service, cast("Any", self.loop))
        self.house = HttpServer(self._turn, cast("Any", None), WebRules())
        self._page = page
        self._pages = 0
        self.service.desks["history"] = self._history

    def ask(self, answer: Callable[[Exchange, Any], None], request: Request) -> Wire:
        """Put a request to a door."""
        wire = Wire()
        exchange = Exchange(request, wire)
        try:
            answer(exchange, None)
        except WeftError as error:
            exchange.refuse(error)
        self.loop.run()
        return wire

    def check_empty(self) -> None:
        """Make sure that nothing is left of peers that are gone."""
        self.loop.run()
        service = self.service
        if _FAULTS.found:
            raise Broken(_FAULTS.found.pop())
        if service.peers or service.inboxes or len(service.router) or service.masks:
            raise Broken("something of a peer that left is still there")

    def _history(self, peer: Peer, reply: bytes, _request: Message) -> WeftError | None:
        self._pages += 1
        head = min(self._pages, _PAGES_MAX)
        page = Message(
            Field.blob("frames", self._page), node="fuzz", next=head, head=head, left=0, missing=0
        )
        self._turn.later(lambda: DeferredRequest(peer, reply, "history").answer(self._turn, page))
        return None
