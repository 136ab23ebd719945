"""`/{service}/stream/…`: published messages as server-sent events."""

from weft.errors import WeftError
from weft.transports.http.connection import HttpDoor
from weft.transports.http.exchange import Exchange
from weft.transports.http.server import HttpServer, is_on, is_one_of
from weft.transports.json.datagrams import Datagrams, text_of
from weft.transports.json.paths import patterns_of
from weft.wire.frame_splitting import error_in
from weft.wire.frames import Flag, Kind, encode, parse
from weft.wire.message.message import Message
from weft.wire.since import since_from

CONTENT_TYPE = "text/event-stream; charset=utf-8"
KEEPALIVE_S = 15

_DIALECT = "stream"
# Neither ends with an empty line: some clients take that for an empty event.
_KEEPALIVE = b":\n"
_RETRY = b"retry: 2000\n"
# Listeners have no replay buffer, so the number of missed messages is unknown.
_RECONNECTED = b"event: gap\ndata: %s\n\n" % text_of(
    {"gap": {"reason": "reconnected", "count": None}}
)
_HEADERS = (("X-Accel-Buffering", "no"),)
_S = 1_000_000_000


class Live:
    """One listener: subscribes once and receives events until it hangs up."""

    def __init__(self, house: HttpServer, exchange: Exchange) -> None:
        """Authenticate and subscribe; the response begins once the gateway has agreed.

        Raises:
            WeftError: the listener was refused, or its path is invalid.
        """
        request = exchange.request
        with_subpaths = is_on(request, "subpaths")
        since = since_from(request.query["since"]) if "since" in request.query else None
        patterns = patterns_of("/" + "/".join(request.path), with_subpaths=with_subpaths)
        self._house = house
        self._exchange = exchange
        self._datagrams = Datagrams()
        self._is_leaving = False
        # History from a fixed position includes the missed messages, so there is no gap.
        is_back = bool(request.headers.get("last-event-id") or request.query.get("last"))
        self._is_gap = is_back and (since is None or isinstance(since, str))
        self._spoke_ns = house.now_ns
        self._seat = house.seat(self)
        house.greet(self._seat, request, "http stream")
        exchange.on_lost = self._lost
        exchange.on_room = self._seat.pour
        more = Message(patterns=[pattern.decode() for pattern in patterns[1:]], listen_only=True)
        wish = encode(Kind.SUBSCRIBE, patterns[0], more.encode(), flags=Flag.ANSWER)
        if since is None:
            self._seat.say(wish)
        else:
            # A refused history must be reported before the response begins, too.
            self._seat.recall(wish, since)

    @property
    def is_over(self) -> bool:
        """Return whether the listener is gone."""
        return self._exchange.is_over

    def keep_alive(self, now_ns: int) -> None:
        """Send a comment after KEEPALIVE_S of silence: proxies close idle connections."""
        self._seat.heard()
        if self._exchange.is_begun and now_ns - self._spoke_ns > KEEPALIVE_S * _S:
            self._send(_KEEPALIVE)

    # Interface of an adapter.

    @property
    def has_room(self) -> bool:
        """Return whether more can be sent now."""
        return self._exchange.has_room

    def tell(self, frames: bytes) -> None:
        """Send frames as events; each frame is encoded once for all listeners."""
        self._send(self._house.shared.said(_DIALECT, frames, self._said))
        if self._is_leaving:
            self._exchange.end()
            self._seat.end()

    def rest(self) -> None:
        """Do nothing: a listener sends no messages."""

    def go_on(self) -> None:
        """Do nothing."""

    def over(self, error: WeftError | None) -> None:
        """Called when the peer has left: end the response, or refuse the request."""
        if self._exchange.is_begun:
            self._exchange.end()
        elif error is not None:
            self._exchange.refuse(error)

    def _said(self, data: bytes) -> bytes:
        """Return a frame as an event; empty if it has none."""
        kind = data[4]
        if kind == Kind.MESSAGE:
            told = self._datagrams.told(data)
            return b"id: %s\ndata: %s\n\n" % (told["id"].encode(), text_of(told))
        if kind == Kind.OK:
            return _KEEPALIVE
        if kind == Kind.ERROR and not self._exchange.is_begun:
            self._exchange.refuse(error_in(parse(data)))
            self._is_leaving = True
            return b""
        if kind == Kind.GOODBYE:
            # The browser reconnects by itself when the response ends.
            self._is_leaving = True
        if kind in (Kind.GAP, Kind.ERROR, Kind.GOODBYE):
            name = Kind(kind).name.lower().encode()
            return b"event: %s\ndata: %s\n\n" % (name, text_of(self._datagrams.told(data)))
        return b""

    def _send(self, said: bytes) -> None:
        self._spoke_ns = self._house.now_ns
        if said and not self._exchange.is_begun:
            self._exchange.begin(CONTENT_TYPE, _HEADERS)
            self._exchange.send(_RETRY + (_RECONNECTED if self._is_gap else b""))
        self._exchange.send(said)

    def _lost(self) -> None:
        self._seat.end()


class Streams:
    """All event streams of a service."""

    def __init__(self, house: HttpServer) -> None:
        self._house = house
        self._listening: set[Live] = set()
        house.sweepers.append(self._sweep)

    def answer(self, exchange: Exchange, _door: HttpDoor) -> None:
        """Open a stream for a listener."""
        if is_one_of(exchange, "GET"):
            self._listening.add(Live(self._house, exchange))

    def _sweep(self, now_ns: int) -> None:
        for live in list(self._listening):
            if live.is_over:
                self._listening.discard(live)
            else:
                live.keep_alive(now_ns)
