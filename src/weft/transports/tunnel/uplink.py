"""`/{service}/events`: datagrams that clients of tunnels send.

Each datagram names its tunnel: in itself, in the header `Weft-Tunnel`, or in the parameter
`tunnel`. Answers to datagrams come down the tunnel; the HTTP response only has the number of
accepted datagrams and the first error.
"""

import json

from weft.errors import BadOption, WeftError
from weft.transports.http.connection import HttpDoor
from weft.transports.http.exchange import JSON, Exchange, Request, status_of
from weft.transports.http.server import HttpServer, bearer, is_one_of
from weft.transports.json.datagrams import Datagram, datagrams_in, error_datagram
from weft.transports.tunnel.registry import Tunnels

_TAKEN = 202


class Events:
    """Endpoint for datagrams of tunnels."""

    def __init__(self, house: HttpServer, tunnels: Tunnels) -> None:
        self._house = house
        self._tunnels = tunnels

    def answer(self, exchange: Exchange, _door: HttpDoor) -> None:
        """Handle datagrams; an invalid one is reported, the others still count.

        Raises:
            BadOption: no datagrams, too many, or not in the place for the method.
            BadField: not JSON.
        """
        if not is_one_of(exchange, "GET", "POST"):
            return
        request = exchange.request
        datagrams = datagrams_in(_text(request))
        named, key = _tunnel_of(request), bearer(request)
        first: tuple[int, WeftError] | None = None
        taken = 0
        for index, datagram in enumerate(datagrams):
            try:
                self._take(datagram, named, key)
                taken += 1
            except WeftError as error:
                first = first or (index, error)
        if first is None:
            exchange.answer(_TAKEN, _line({"ok": taken}), JSON)
        else:
            at, problem = first
            told = error_datagram(problem) | {"at": at, "ok": taken}
            exchange.answer(status_of(problem), _line(told), JSON)

    def _take(self, datagram: Datagram, named: str, key: str) -> None:
        try:
            known_by = _known_by(datagram, named)
            tunnel = self._tunnels.found(known_by, key)
        except WeftError as error:
            self._house.refused(type(error).__name__)
            raise
        # The tunnel counts its own refusals.
        tunnel.say(datagram)


def _text(request: Request) -> bytes | str:
    if request.method == "POST":
        return request.body
    if "datagram" not in request.query:
        raise BadOption("a GET has its datagrams in the parameter datagram, as JSON")
    return request.query["datagram"]


def _tunnel_of(request: Request) -> str:
    """Return the tunnel that a request names for all its datagrams; empty for none."""
    by_header = request.headers.get("weft-tunnel", "")
    by_query = request.query.get("tunnel", "")
    if by_header and by_query and by_header != by_query:
        raise BadOption("Weft-Tunnel and the parameter tunnel name two tunnels")
    return by_header or by_query


def _known_by(datagram: Datagram, named: str) -> str:
    own = datagram.pop("tunnel", named)
    if not isinstance(own, str) or not own:
        raise BadOption("a datagram names its tunnel: tunnel is the id from the tunnel's header")
    if named and own != named:
        raise BadOption("a datagram names another tunnel than its request")
    return own


def _line(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
