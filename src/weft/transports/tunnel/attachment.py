"""Downlinks: the connections that a tunnel sends through, a stream or a long poll.

A WebSocket is a downlink, too: see `tunnel/websocket`.
"""

from dataclasses import replace
from typing import Protocol

from weft.broker.service import Peer
from weft.errors import WeftError
from weft.transports.http.exchange import NOTHING_ASKED, Exchange
from weft.transports.http.server import HttpServer
from weft.transports.json.datagrams import Datagram, identity, message_datagram, text_of
from weft.transports.json.paths import path_of
from weft.transports.tunnel.formats import Format, FormatValues
from weft.transports.tunnel.replay_buffer import Item, Own
from weft.wire.frame_splitting import each_frame
from weft.wire.frames import parse

# Cache key of a message's JSON, which formats with different envelopes share.
_TEXT = "tunnel"
# Asks proxies not to buffer the response.
_HEADERS = (("X-Accel-Buffering", "no"),)


class DownlinkOwner(Protocol):
    """The tunnel, as its downlink uses it."""

    @property
    def place(self) -> FormatValues:
        """The id and path of the tunnel."""

    @property
    def peer(self) -> Peer:
        """The tunnel's peer."""

    def hear(self, text: bytes) -> None:
        """Handle datagrams that the client sent over the downlink."""

    def left(self) -> None:
        """Called when the client has closed the connection for good."""

    def lost(self) -> None:
        """Called when the connection is lost; the client may reattach."""

    def pour(self) -> None:
        """Called when there is room again."""


class Attachment:
    """Downlink of a tunnel; subclasses define how it sends."""

    __slots__ = ("told_ns",)

    # Whether it ends after the first send (long poll); whether the client also sends over it.
    is_held = False
    hears = False

    def __init__(self) -> None:
        # Time of the last send.
        self.told_ns = 0

    @property
    def keepalive_s(self) -> float:
        """Interval of silence after which a keepalive is sent."""
        raise NotImplementedError

    @property
    def has_room(self) -> bool:
        """Return whether more can be sent now."""
        raise NotImplementedError

    @property
    def is_over(self) -> bool:
        """Return whether nothing more can be sent."""
        raise NotImplementedError

    def join(self, owner: DownlinkOwner) -> None:
        """Attach to a tunnel."""
        raise NotImplementedError

    def let_go(self) -> None:
        """Detach from the tunnel: events of the connection are ignored."""
        raise NotImplementedError

    def open(self, facts: bytes) -> None:
        """Send the header of a new or reattached tunnel; `facts` is its description as JSON."""
        raise NotImplementedError

    def tell(self, items: list[Item]) -> None:
        """Send datagrams."""
        raise NotImplementedError

    def keep_alive(self) -> None:
        """Send a keepalive."""
        raise NotImplementedError

    def close(self, reason: str, error: WeftError | None = None) -> None:
        """End gracefully, with the reason where the format has a place for it."""
        raise NotImplementedError

    def rest(self) -> None:
        """Pause input, if the client sends over this connection."""

    def go_on(self) -> None:
        """Resume input."""

    def abort(self) -> None:
        """End at once."""
        raise NotImplementedError


class HttpDownlink(Attachment):
    """Response to an HTTP request, in a format."""

    __slots__ = ("_callback", "_house", "_place", "exchange", "format", "is_padded")

    def __init__(
        self, house: HttpServer, exchange: Exchange, form: Format, callback: bytes
    ) -> None:
        super().__init__()
        self._house = house
        self._callback = callback
        self._place = FormatValues(b"", b"")
        self.exchange = exchange
        self.format = form
        self.is_padded = False

    @property
    def keepalive_s(self) -> float:
        """Interval of silence after which a keepalive is sent."""
        return self.format.keepalive_s

    @property
    def has_room(self) -> bool:
        """Return whether more can be sent now."""
        return self.exchange.has_room

    @property
    def is_over(self) -> bool:
        """Return whether the response is complete or the client hung up."""
        return self.exchange.is_over

    def join(self, owner: DownlinkOwner) -> None:
        """Attach to a tunnel."""
        self._place = replace(owner.place, callback=self._callback)
        self.exchange.is_held = self.is_held
        self.exchange.on_lost = owner.lost
        self.exchange.on_room = owner.pour
        self._house.attached += 1

    def let_go(self) -> None:
        """Detach from the tunnel: events of the connection are ignored."""
        if self.exchange.on_lost is not None:
            self._house.attached -= 1
        self.exchange.on_lost = None
        self.exchange.on_room = None

    def abort(self) -> None:
        """Close the connection at once."""
        self.exchange.abort()

    def said(self, items: list[Item]) -> list[bytes]:
        """Return datagrams in their envelopes; messages for many tunnels are encoded once."""
        return [
            self._own(item) if isinstance(item, Own) else self._messages(item) for item in items
        ]

    def _messages(self, frames: bytes) -> bytes:
        form = self.format
        said = self._house.shared.get(form.dialect, frames) if form.is_same_for_all else None
        if said is None:
            joint = b"," if self.is_held else b""
            said = joint.join([self._message(frame) for frame in each_frame(frames)])
            if form.is_same_for_all:
                self._house.shared.keep(form.dialect, frames, said)
        return said

    def _message(self, data: bytes) -> bytes:
        frame = parse(data)
        text = self._house.shared.get(_TEXT, data)
        if text is None:
            text = text_of(message_datagram(data, frame))
            self._house.shared.keep(_TEXT, data, text)
        path = path_of(frame.subject)
        return self.format.envelope(self._place, identity(frame), path, text)

    def _own(self, item: Own) -> bytes:
        datagram = own_datagram(item, self._place.path.decode())
        text = text_of(datagram)
        return self.format.envelope(self._place, item.known_by, datagram["path"], text)


class StreamDownlink(HttpDownlink):
    """Streamed response."""

    __slots__ = ()

    def open(self, facts: bytes) -> None:
        """Send the header."""
        exchange = self.exchange
        exchange.begin(self.format.content_type(self._place), _HEADERS)
        # No longer needed, and most of the memory of an idle stream.
        exchange.request = NOTHING_ASKED
        padding = self.format.padding if self.is_padded else b""
        exchange.send(padding + self.format.header(self._place, facts))

    def tell(self, items: list[Item]) -> None:
        """Send datagrams."""
        said = self.said(items)
        self.exchange.send(said[0] if len(said) == 1 else b"".join(said))

    def keep_alive(self) -> None:
        """Send a keepalive."""
        if self.exchange.has_room:
            self.exchange.send(self.format.keepalive(self._place))

    def close(self, reason: str, error: WeftError | None = None) -> None:  # noqa: ARG002  # the reason names it
        """Send the footer and end."""
        self.let_go()
        if not self.exchange.has_room:
            # A client that does not read would not read the footer either.
            self.exchange.abort()
            return
        self.exchange.send(self.format.footer(self._place, _why(reason)))
        self.exchange.end()


class LongPollDownlink(HttpDownlink):
    """Long poll: a response that waits for datagrams, sends them all and ends."""

    __slots__ = ()

    is_held = True

    @property
    def has_room(self) -> bool:
        """Return True: nothing was sent yet."""
        return True

    def open(self, facts: bytes) -> None:
        """Answer at once, with the description of the tunnel only."""
        self._answer([self.format.encoding.of_text(facts)])

    def tell(self, items: list[Item]) -> None:
        """Answer with datagrams."""
        self._answer(self.said(items))

    def keep_alive(self) -> None:
        """Answer with an empty list."""
        self._answer([])

    def close(self, reason: str, error: WeftError | None = None) -> None:  # noqa: ARG002  # the reason names it
        """Answer with the reason of the end only."""
        self._answer([self.format.encoding.of_text(_why(reason))])

    def _answer(self, datagrams: list[bytes]) -> None:
        self.let_go()
        body = self.format.whole(self._place, datagrams)
        self.exchange.answer(200, body, self.format.content_type(self._place), _HEADERS)


def own_datagram(item: Own, path: str) -> Datagram:
    """Return a datagram of the tunnel itself, with its id and path."""
    return {"id": item.known_by, "path": path} | item.datagram


def _why(reason: str) -> bytes:
    return text_of({"close": {"reason": reason}})
