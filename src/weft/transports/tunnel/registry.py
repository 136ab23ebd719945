"""`/{service}/tunnel`: opens tunnels and reattaches clients to them.

`new=1` opens a tunnel, `tunnel=ID` reattaches to it; an unknown or expired id opens another one,
whose header has `renewed`. A client must authenticate before it gets an id.
"""

import secrets

from weft.broker.auth.key_connections import holder_of
from weft.broker.auth.key_quota import KeyQuota
from weft.errors import BadOption, NotYours, TooMany, shortened
from weft.transports.http.connection import HttpDoor
from weft.transports.http.exchange import Exchange, Request
from weft.transports.http.origins import WebRules
from weft.transports.http.server import HttpServer, bearer, is_on, is_one_of
from weft.transports.tunnel.attachment import HttpDownlink, LongPollDownlink, StreamDownlink
from weft.transports.tunnel.formats import Format, checked_callback, formats_of
from weft.transports.tunnel.tunnel import Tunnel

# 192 bits cannot be guessed.
_ID_BYTES = 24


class Tunnels:
    """Tunnels of one service, by id."""

    def __init__(self, house: HttpServer) -> None:
        self._house = house
        self._tunnels: dict[str, Tunnel] = {}
        self._formats: dict[str, Format] = {}
        self._formats_of: WebRules | None = None
        self._shares = KeyQuota("tunnels")
        house.sweepers.append(self.sweep)

    def __len__(self) -> int:
        return len(self._tunnels)

    def answer(self, exchange: Exchange, _door: HttpDoor) -> None:
        """Open a tunnel, or reattach to one.

        Raises:
            BadOption: the request names no tunnel or an unknown format.
            NotYours: the key is not the tunnel's.
            TooMany: the limit of tunnels is reached.
            WeftError: the client was refused.
        """
        if not is_one_of(exchange, "GET"):
            return
        request = exchange.request
        known_by = wanted(request)
        answer = self._answer(exchange)
        tunnel = self.known(known_by)
        if tunnel is not None:
            tunnel.check_key(bearer(request))
            last = request.query.get("last", "") or request.headers.get("last-event-id", "")
            tunnel.attach(answer, last)
        else:
            tunnel = self.new(request, f"tunnel {answer.format.name}")
            tunnel.open(answer, is_renewed=known_by != "")

    def known(self, known_by: str) -> Tunnel | None:
        """Return the open tunnel with an id, or None."""
        tunnel = self._tunnels.get(known_by)
        return tunnel if tunnel is not None and tunnel.is_open else None

    def new(self, request: Request, client: str) -> Tunnel:
        """Return a tunnel for an authenticated client, not opened yet.

        Raises:
            TooMany: the limit of tunnels, in total or of the key, is reached.
            WeftError: the client was refused.
        """
        limit = self._house.rules.tunnels
        if len(self._tunnels) >= limit:
            raise TooMany(f"{limit} tunnels are open, which is the limit")
        tunnel = Tunnel(self._house, self)
        self._house.greet(tunnel.seat, request, client)
        holder = holder_of(tunnel.peer, request.connection)
        try:
            self._shares.check(holder, limit, self._house.limits)
        except TooMany as error:
            tunnel.seat.end(error)
            raise
        self._shares.add(holder)
        key = None if "ticket" in request.query else bearer(request)
        tunnel.name(secrets.token_urlsafe(_ID_BYTES), key, holder)
        self._tunnels[tunnel.known_by] = tunnel
        return tunnel

    def found(self, known_by: str, key: str) -> Tunnel:
        """Return the tunnel that a client sends datagrams for.

        Raises:
            NotYours: no such tunnel, or one of another client; the error does not reveal which.
        """
        tunnel = self.known(known_by)
        if tunnel is None:
            raise NotYours("this tunnel is not yours, or no longer there")
        tunnel.check_key(key)
        return tunnel

    def over(self, tunnel: Tunnel) -> None:
        """Called when a tunnel has ended: remove it."""
        if self._tunnels.pop(tunnel.known_by, None) is not None:
            self._shares.add(tunnel.account.holder, -1)

    def sweep(self, now_ns: int) -> None:
        """Do periodic work of each tunnel."""
        for tunnel in list(self._tunnels.values()):
            tunnel.sweep(now_ns)

    def _answer(self, exchange: Exchange) -> HttpDownlink:
        query = exchange.request.query
        known = self._known_formats()
        name = query.get("format", "")
        if name not in known:
            shown = (
                f"{shortened(name)} is not a known format"
                if name
                else "the parameter format is missing"
            )
            raise BadOption(f"{shown}: the formats are {', '.join(sorted(known))}")
        callback = checked_callback(query.get("callback", "")) if name == "jsonp" else b""
        kind = LongPollDownlink if known[name].is_held else StreamDownlink
        answer = kind(self._house, exchange, known[name], callback)
        answer.is_padded = is_on(exchange.request, "padding")
        return answer

    def _known_formats(self) -> dict[str, Format]:
        rules = self._house.rules
        if rules is not self._formats_of:
            self._formats = formats_of(rules.formats, has_jsonp=rules.jsonp)
            self._formats_of = rules
        return self._formats


def wanted(request: Request) -> str:
    """Return the id of the tunnel to reattach to; empty for a new one.

    Raises:
        BadOption: neither or both of `new` and `tunnel`.
    """
    is_new, known_by = is_on(request, "new"), request.query.get("tunnel", "")
    if is_new == bool(known_by):
        raise BadOption("a request has new=1 for a new tunnel, or tunnel=ID to reattach to one")
    return known_by
