"""`POST /{service}/ticket`: issues one-time tickets in exchange for a key.

A browser cannot send headers with a WebSocket or an EventSource, and URLs are logged and stored; a
ticket in a URL is worthless once it was used.
"""

import json
import secrets

from weft.broker.auth.tickets import TICKET_LIFE_NS
from weft.broker.handshake import no_key, not_accepted
from weft.transports.http.connection import HttpDoor
from weft.transports.http.exchange import JSON, Exchange
from weft.transports.http.server import HttpServer, bearer, is_one_of

_TICKET_BYTES = 24
_S = 1_000_000_000


class TicketOffice:
    """Issuer of the tickets of one service."""

    def __init__(self, house: HttpServer) -> None:
        self._house = house

    def answer(self, exchange: Exchange, _door: HttpDoor) -> None:
        """Issue a ticket for the key of a request.

        Raises:
            BadKey: no key, or one that is not accepted.
            TooMany: the limit of unused tickets is reached.
        """
        if not is_one_of(exchange, "POST"):
            return
        service = self._house.service
        text = secrets.token_urlsafe(_TICKET_BYTES)
        if service.keyring is not None:
            shown = bearer(exchange.request)
            if not shown:
                raise no_key()
            key = service.keyring.match(shown, service.wall_ns)
            if key is None:
                raise not_accepted()
            service.tickets.add(text, key.id, service.now_ns, service.limits)
        body = json.dumps({"ticket": text, "expires_s": TICKET_LIFE_NS // _S}).encode()
        exchange.answer(200, body + b"\n", JSON)
