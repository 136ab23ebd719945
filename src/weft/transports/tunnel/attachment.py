"""A connection that a tunnel is told by: a stream that goes on, or an answer that is held.

A WebSocket can be one, too: `tunnel_socket`.
"""

from dataclasses import replace
from typing import Protocol

from weft.broker.service import Peer
from weft.errors import WeftError
from weft.transports.http.exchange import NOTHING_ASKED, Exchange
from weft.transports.http.server import House
from weft.transports.json.datagrams import Datagram, identity, message_datagram, text_of
from weft.transports.json.paths import path_of
from weft.transports.tunnel.formats import Format, Place
from weft.transports.tunnel.replay_buffer import Item, Own
from weft.wire.frame_splitting import each_frame
from weft.wire.frames import parse

# Under which the JSON of a message is shared by formats that put other things around it.
_TEXT = "tunnel"
# Proxies that gather an answer before they pass it on are asked not to.
_HEADERS = (("X-Accel-Buffering", "no"),)


class Owner(Protocol):
    """The tunnel that is told by an attachment."""

    @property
    def place(self) -> Place:
        """Which tunnel it is."""

    @property
    def peer(self) -> Peer:
        """The peer that it is."""

    def hear(self, text: bytes) -> None:
        """Its client said something by the connection."""

    def left(self) -> None:
        """Its client has closed the connection, and will not come back."""

    def lost(self) -> None:
        """The connection is gone; somebody may come back."""

    def pour(self) -> None:
        """There is room again."""


class Attachment:
    """The connection that a tunnel is told by; how it is told is for those derived from it."""

    __slots__ = ("told_ns",)

    # Whether it is told once, and then no more; whether its client speaks by it.
    is_held = False
    hears = False

    def __init__(self) -> None:
        # When something was said last.
        self.told_ns = 0

    @property
    def keepalive_s(self) -> float:
        """After how long a silence something is said."""
        raise NotImplementedError

    @property
    def has_room(self) -> bool:
        """Say if more can be told now."""
        raise NotImplementedError

    @property
    def is_over(self) -> bool:
        """Say if nothing more can be told."""
        raise NotImplementedError

    def join(self, owner: Owner) -> None:
        """Belong to a tunnel from now on."""
        raise NotImplementedError

    def let_go(self) -> None:
        """Belong to nobody: hear no more of the connection."""
        raise NotImplementedError

    def open(self, facts: bytes) -> None:
        """Tell a newcomer of its tunnel; the facts are JSON that says which it is."""
        raise NotImplementedError

    def tell(self, items: list[Item]) -> None:
        """Tell of datagrams."""
        raise NotImplementedError

    def keep_alive(self) -> None:
        """Say that there is nothing to say."""
        raise NotImplementedError

    def close(self, reason: str, error: WeftError | None = None) -> None:
        """End it properly, and say why where there is a place for it."""
        raise NotImplementedError

    def rest(self) -> None:
        """Take nothing in for now, if it does."""

    def go_on(self) -> None:
        """Take in again."""

    def abort(self) -> None:
        """End it at once."""
        raise NotImplementedError


class Answer(Attachment):
    """An answer to a request, in a format."""

    __slots__ = ("_callback", "_house", "_place", "exchange", "format", "is_padded")

    def __init__(self, house: House, exchange: Exchange, form: Format, callback: bytes) -> None:
        super().__init__()
        self._house = house
        self._callback = callback
        self._place = Place(b"", b"")
        self.exchange = exchange
        self.format = form
        self.is_padded = False

    @property
    def keepalive_s(self) -> float:
        """After how long a silence something is said."""
        return self.format.keepalive_s

    @property
    def has_room(self) -> bool:
        """Say if more can be told now."""
        return self.exchange.has_room

    @property
    def is_over(self) -> bool:
        """Say if it was answered, or hung up."""
        return self.exchange.is_over

    def join(self, owner: Owner) -> None:
        """Belong to a tunnel from now on."""
        self._place = replace(owner.place, callback=self._callback)
        self.exchange.is_held = self.is_held
        self.exchange.on_lost = owner.lost
        self.exchange.on_room = owner.pour
        self._house.attached += 1

    def let_go(self) -> None:
        """Belong to nobody: hear no more of the connection."""
        if self.exchange.on_lost is not None:
            self._house.attached -= 1
        self.exchange.on_lost = None
        self.exchange.on_room = None

    def abort(self) -> None:
        """Close the connection at once."""
        self.exchange.abort()

    def said(self, items: list[Item]) -> list[bytes]:
        """Datagrams in their envelopes: what goes to many is put there once."""
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


class Stream(Answer):
    """An answer that lasts."""

    __slots__ = ()

    def open(self, facts: bytes) -> None:
        """Send the header."""
        exchange = self.exchange
        exchange.begin(self.format.content_type(self._place), _HEADERS)
        # Nobody looks at it again, and it is most of what an idle stream would take.
        exchange.request = NOTHING_ASKED
        padding = self.format.padding if self.is_padded else b""
        exchange.send(padding + self.format.header(self._place, facts))

    def tell(self, items: list[Item]) -> None:
        """Send datagrams."""
        said = self.said(items)
        self.exchange.send(said[0] if len(said) == 1 else b"".join(said))

    def keep_alive(self) -> None:
        """Send what keeps the connection."""
        if self.exchange.has_room:
            self.exchange.send(self.format.keepalive(self._place))

    def close(self, reason: str, error: WeftError | None = None) -> None:  # noqa: ARG002  # the reason says it
        """Send the footer."""
        self.let_go()
        if not self.exchange.has_room:
            # Whoever does not read what it was sent would not read this either.
            self.exchange.abort()
            return
        self.exchange.send(self.format.footer(self._place, _why(reason)))
        self.exchange.end()


class Held(Answer):
    """An answer that waits for something to say, says all of it, and is over."""

    __slots__ = ()

    is_held = True

    @property
    def has_room(self) -> bool:
        """It always has: nothing was sent yet."""
        return True

    def open(self, facts: bytes) -> None:
        """Answer at once, with nothing but the facts."""
        self._answer([self.format.encoding.of_text(facts)])

    def tell(self, items: list[Item]) -> None:
        """Answer with datagrams."""
        self._answer(self.said(items))

    def keep_alive(self) -> None:
        """Answer that there was nothing."""
        self._answer([])

    def close(self, reason: str, error: WeftError | None = None) -> None:  # noqa: ARG002  # the reason says it
        """Answer with nothing but that it ends."""
        self._answer([self.format.encoding.of_text(_why(reason))])

    def _answer(self, datagrams: list[bytes]) -> None:
        self.let_go()
        body = self.format.whole(self._place, datagrams)
        self.exchange.answer(200, body, self.format.content_type(self._place), _HEADERS)


def own_datagram(item: Own, path: str) -> Datagram:
    """What is told of one that is no message, on a tunnel with this path of its own."""
    return {"id": item.known_by, "path": path} | item.datagram


def _why(reason: str) -> bytes:
    return text_of({"close": {"reason": reason}})
