"""`/{service}/tunnel`: tunnels are opened here, and come back to.

`new=1` opens one, `tunnel=ID` comes back to it; an id that is not known, or no longer, opens
another as well, which says so. Whoever opens one shows who it is first: only then there is an id.
"""

import secrets

from weft.broker.auth.key_connections import holder_of
from weft.broker.auth.key_quota import Shares
from weft.errors import BadOption, NotYours, TooMany, shortened
from weft.transports.http.connection import HttpDoor
from weft.transports.http.exchange import Exchange, Request
from weft.transports.http.origins import WebRules
from weft.transports.http.server import House, bearer, is_on, is_one_of
from weft.transports.tunnel.attachment import Answer, Held, Stream
from weft.transports.tunnel.formats import Format, checked_callback, formats_of
from weft.transports.tunnel.tunnel import Tunnel

# 192 bits: nobody finds one by trying.
_ID_BYTES = 24


class Tunnels:
    """The tunnels of one service, by their ids."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._tunnels: dict[str, Tunnel] = {}
        self._formats: dict[str, Format] = {}
        self._formats_of: WebRules | None = None
        self._shares = Shares("tunnels")
        house.sweepers.append(self.sweep)

    def __len__(self) -> int:
        return len(self._tunnels)

    def answer(self, exchange: Exchange, _door: HttpDoor) -> None:
        """Open a tunnel, or let somebody come back to one.

        Raises:
            BadOption: the request does not say which, or names no format.
            NotYours: it shows another key than the tunnel's.
            TooMany: there are as many as there may be.
            WeftError: whoever asks is not let in.
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
        """The tunnel of an id, if somebody may come back to it."""
        tunnel = self._tunnels.get(known_by)
        return tunnel if tunnel is not None and tunnel.is_open else None

    def new(self, request: Request, client: str) -> Tunnel:
        """A tunnel for whoever shows a key or a ticket that counts, to be opened.

        Raises:
            TooMany: there are as many as there may be, or as its key may have.
            WeftError: whoever asks is not let in.
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
        """The tunnel that somebody says something for.

        Raises:
            NotYours: there is none, or it is another's: which of them is not told.
        """
        tunnel = self.known(known_by)
        if tunnel is None:
            raise NotYours("this tunnel is not yours, or no longer there")
        tunnel.check_key(key)
        return tunnel

    def over(self, tunnel: Tunnel) -> None:
        """A tunnel is no more."""
        if self._tunnels.pop(tunnel.known_by, None) is not None:
            self._shares.add(tunnel.account.holder, -1)

    def sweep(self, now_ns: int) -> None:
        """Do what is due for each."""
        for tunnel in list(self._tunnels.values()):
            tunnel.sweep(now_ns)

    def _answer(self, exchange: Exchange) -> Answer:
        query = exchange.request.query
        known = self._known_formats()
        name = query.get("format", "")
        if name not in known:
            shown = f"{shortened(name)} is no format" if name else "a tunnel has a format"
            raise BadOption(f"{shown}: there are {', '.join(sorted(known))}")
        callback = checked_callback(query.get("callback", "")) if name == "jsonp" else b""
        kind = Held if known[name].is_held else Stream
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
    """The id of the tunnel that a request wants to come back to; empty if it wants a new one.

    Raises:
        BadOption: it does not say which.
    """
    is_new, known_by = is_on(request, "new"), request.query.get("tunnel", "")
    if is_new == bool(known_by):
        raise BadOption("a request has new=1 for a new tunnel, or tunnel=ID to come back to one")
    return known_by
