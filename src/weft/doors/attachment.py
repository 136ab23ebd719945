"""A connection that a tunnel is told by: a stream that goes on, or an answer that is held."""

from weft.core.frames import parse
from weft.dialects.datagrams import identity, message_datagram, text_of
from weft.dialects.formats import Format, Place
from weft.dialects.paths import path_of
from weft.dialects.spoken import each_frame
from weft.doors.exchange import NOTHING_ASKED, Exchange
from weft.doors.ring import Item, Own
from weft.doors.shared import Shared

# Under which the JSON of a message is shared by formats that put other things around it.
_TEXT = "tunnel"
# Proxies that gather an answer before they pass it on are asked not to.
_HEADERS = (("X-Accel-Buffering", "no"),)


class Attachment:
    """An answer in a format; what is told on it, and how, is for those derived from it."""

    __slots__ = ("exchange", "format", "is_padded", "place", "shared", "told_ns")

    def __init__(self, exchange: Exchange, form: Format, place: Place, shared: Shared) -> None:
        self.exchange = exchange
        self.format = form
        self.place = place
        self.shared = shared
        self.is_padded = False
        # When something was said last.
        self.told_ns = 0

    @property
    def has_room(self) -> bool:
        """Say if more can be told now."""
        return self.exchange.has_room

    def open(self, facts: bytes) -> None:
        """Tell a newcomer of its tunnel; the facts are JSON that says which it is."""
        raise NotImplementedError

    def tell(self, items: list[Item]) -> None:
        """Tell of datagrams."""
        raise NotImplementedError

    def keep_alive(self) -> None:
        """Say that there is nothing to say."""
        raise NotImplementedError

    def close(self, reason: str) -> None:
        """End the answer properly, and say why where there is a place for it."""
        raise NotImplementedError

    def let_go(self) -> None:
        """Hear no more of the connection."""
        self.exchange.on_lost = None
        self.exchange.on_room = None

    def said(self, items: list[Item]) -> list[bytes]:
        """Datagrams in their envelopes: what goes to many is put there once."""
        return [
            self._own(item) if isinstance(item, Own) else self._messages(item) for item in items
        ]

    def _messages(self, frames: bytes) -> bytes:
        form = self.format
        said = self.shared.get(form.dialect, frames) if form.is_same_for_all else None
        if said is None:
            joint = b"," if form.is_held else b""
            said = joint.join([self._message(frame) for frame in each_frame(frames)])
            if form.is_same_for_all:
                self.shared.keep(form.dialect, frames, said)
        return said

    def _message(self, data: bytes) -> bytes:
        frame = parse(data)
        text = self.shared.get(_TEXT, data)
        if text is None:
            text = text_of(message_datagram(data, frame))
            self.shared.keep(_TEXT, data, text)
        path = path_of(frame.subject)
        return self.format.envelope(self.place, identity(frame), path, text)

    def _own(self, item: Own) -> bytes:
        path = item.datagram.get("path") or self.place.path.decode()
        datagram = {"id": item.known_by, "path": path} | item.datagram
        return self.format.envelope(self.place, item.known_by, path, text_of(datagram))


class Stream(Attachment):
    """An answer that lasts."""

    __slots__ = ()

    def open(self, facts: bytes) -> None:
        """Send the header."""
        exchange = self.exchange
        exchange.begin(self.format.content_type(self.place), _HEADERS)
        # Nobody looks at it again, and it is most of what an idle stream would take.
        exchange.request = NOTHING_ASKED
        padding = self.format.padding if self.is_padded else b""
        exchange.send(padding + self.format.header(self.place, facts))

    def tell(self, items: list[Item]) -> None:
        """Send datagrams."""
        said = self.said(items)
        self.exchange.send(said[0] if len(said) == 1 else b"".join(said))

    def keep_alive(self) -> None:
        """Send what keeps the connection."""
        if self.exchange.has_room:
            self.exchange.send(self.format.keepalive(self.place))

    def close(self, reason: str) -> None:
        """Send the footer."""
        self.let_go()
        if not self.exchange.has_room:
            # Whoever does not read what it was sent would not read this either.
            self.exchange.abort()
            return
        self.exchange.send(self.format.footer(self.place, _why(reason)))
        self.exchange.end()


class Held(Attachment):
    """An answer that waits for something to say, says all of it, and is over."""

    __slots__ = ()

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

    def close(self, reason: str) -> None:
        """Answer with nothing but that it ends."""
        self._answer([self.format.encoding.of_text(_why(reason))])

    def _answer(self, datagrams: list[bytes]) -> None:
        self.let_go()
        body = self.format.whole(self.place, datagrams)
        self.exchange.answer(200, body, self.format.content_type(self.place), _HEADERS)


def _why(reason: str) -> bytes:
    return text_of({"close": {"reason": reason}})
