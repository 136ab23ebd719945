"""`/{service}/bayeux`: CometD and Faye clients, by long-polling, callback-polling and WebSocket."""

import re
from collections.abc import Callable
from urllib.parse import parse_qsl

from weft.errors import BadOption, NotKnown, Refused
from weft.transports.bayeux.batch import BayeuxBatch
from weft.transports.bayeux.dispatcher import BayeuxSender, Desk
from weft.transports.bayeux.protocol import MESSAGES_MAX, messages_in
from weft.transports.bayeux.websocket import BayeuxSocket
from weft.transports.http.connection import HttpDoor
from weft.transports.http.exchange import JSON, Exchange, Request
from weft.transports.http.server import HttpServer, is_one_of
from weft.transports.websocket.websocket import handshake

SCRIPT = "text/javascript; charset=utf-8"
CALLBACK_MAX = 128

# Clients append these to the path, for logs.
_SUFFIXES = ("", "handshake", "connect", "disconnect")
_JSON_TYPES = ("application/json", "text/json")
# Some clients send JSON with these types, which need no CORS preflight.
_FORM_TYPES = ("application/x-www-form-urlencoded", "text/plain", "")
_FORM_FIELDS_MAX = 64
_NAME = r"[A-Za-z_$][A-Za-z0-9_$]*"
_CALLBACK = re.compile(rf"{_NAME}(?:\.{_NAME})*", re.ASCII)
# Line ends in a script, but not in JSON.
_LINE_ENDS = {"\u2028".encode(): rb"\u2028", "\u2029".encode(): rb"\u2029"}

Send = Callable[[bytes], None]


class BayeuxDoor:
    """Endpoint of Bayeux clients, with their dispatcher."""

    def __init__(self, house: HttpServer) -> None:
        self._house = house
        self.desk = Desk(house)

    def answer(self, exchange: Exchange, door: HttpDoor) -> None:
        """Handle the messages of a request, or open a WebSocket."""
        request = exchange.request
        if len(request.path) > 1 or (request.path and request.path[0] not in _SUFFIXES):
            raise NotKnown(f"unknown path below /bayeux: it has {', '.join(_SUFFIXES[1:])}")
        if request.headers.get("upgrade", "").lower() == "websocket":
            checked = handshake(self._house, exchange)
            if checked is not None:
                BayeuxSocket(self._house, self.desk, request).open(door, checked)
            return
        if not is_one_of(exchange, "POST", "GET"):
            return
        if request.method == "GET":
            self._answer_script(exchange)
        else:
            texts = texts_in(request)
            self._deal(exchange, texts, lambda text: exchange.answer(200, text, JSON))

    def _answer_script(self, exchange: Exchange) -> None:
        """Handle messages in a URL (callback-polling); the answer calls the page's function."""
        query = exchange.request.query
        if not self._house.rules.jsonp:
            raise Refused("callback-polling is off; see web.jsonp")
        callback = query.get("jsonp", "")
        if len(callback) > CALLBACK_MAX or not _CALLBACK.fullmatch(callback):
            raise BadOption("jsonp names a function: letters, digits, '_', '$' and dots")
        if "message" not in query:
            raise BadOption("the parameter message is missing")

        def send(text: bytes) -> None:
            for raw, escaped in _LINE_ENDS.items():
                text = text.replace(raw, escaped)
            # The comment prevents that the client chooses the first bytes of the response.
            exchange.answer(200, b"/**/%s(%s);" % (callback.encode(), text), SCRIPT)

        self._deal(exchange, [query["message"]], send, is_in_url=True)

    def _deal(
        self, exchange: Exchange, texts: list[str | bytes], send: Send, *, is_in_url: bool = False
    ) -> None:
        messages = [message for text in texts for message in messages_in(text)]
        if len(messages) > MESSAGES_MAX:
            raise BadOption(f"{len(messages)} messages are over the limit of {MESSAGES_MAX}")
        caller = BayeuxSender(exchange.request, is_in_url=is_in_url)
        batch = BayeuxBatch(messages, send)
        self.desk.deal(batch, caller)
        session = caller.session
        if session is not None and not exchange.is_over:
            exchange.is_held = session.is_holding(batch)
            exchange.on_lost = lambda: session.lost(batch)


def texts_in(request: Request) -> list[str | bytes]:
    """Return the texts of messages in the body of a request.

    Raises:
        BadOption: another content type, or an invalid form.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in _JSON_TYPES:
        return [request.body]
    if kind not in _FORM_TYPES:
        raise BadOption(f"messages come as {_JSON_TYPES[0]}, or in a form")
    if not request.body.startswith(b"message="):
        return [request.body]
    try:
        fields = parse_qsl(
            request.body.decode("ascii"),
            strict_parsing=True,
            errors="strict",
            max_num_fields=_FORM_FIELDS_MAX,
        )
    except ValueError as error:
        raise BadOption(f"invalid form: {type(error).__name__}") from error
    return [value for name, value in fields if name == "message"]
