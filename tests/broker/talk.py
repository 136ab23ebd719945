"""A service without sockets or a clock: guests talk to it and hear what it says to them.

The door of a guest only takes note of what it is told, and sending is a turn ended by hand.
"""

from typing import Any

from weft.broker.auth.revalidate import review
from weft.broker.delivery.arena import Arena
from weft.broker.delivery.outbox import Outbox
from weft.broker.disconnect import withdraw_ended
from weft.broker.ingest import READ_BYTES, drop_large, feed, took_large
from weft.broker.limits import Limits
from weft.broker.service import Peer, Service
from weft.wire.frames import Decoder, Flag, Frame, Kind, encode, parse
from weft.wire.message.message import Message

SECOND_NS = 1_000_000_000
ORIGIN = 7
ANSWER = Flag.ANSWER
REQUEST = Flag.REQUEST
NOT_BACK = Flag.NOT_BACK


class NotedDoor:
    """Remembers what was asked of it."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def fall_behind(self) -> None:
        self.told.append("fall behind")

    def press(self) -> None:
        self.told.append("press")

    def resume(self) -> None:
        self.told.append("resume")

    def finish(self) -> None:
        self.told.append("finish")

    def abort(self) -> None:
        self.told.append("abort")


class House:
    """A service, and everyone who came in."""

    def __init__(self, limits: Limits | None = None, name: str = "weather") -> None:
        self.service = Service(name, "london-1", ORIGIN, limits or Limits())
        self.guests: dict[int, Guest] = {}
        self.service.now_ns = 1000 * SECOND_NS
        self.service.wall_ns = 1_800_000_000 * SECOND_NS

    @property
    def arena(self) -> Arena:
        return self.service.arena

    def arrive(self) -> "Guest":
        """Someone connects and has yet to say a word."""
        door = NotedDoor()
        peer = self.service.join(len(self.guests) + 0xABC, door)
        guest = Guest(self, peer, door)
        self.guests[peer.number] = guest
        return guest

    def guest(self, name: bytes = b"", *patterns: bytes) -> "Guest":
        """Someone who was greeted, and subscribed to these patterns."""
        guest = self.arrive()
        guest.say(connect(name=name), *(subscribe(pattern, flags=0) for pattern in patterns))
        return guest

    def wait(self, seconds: float) -> None:
        """Let time pass; nobody sweeps by that."""
        self.service.now_ns += int(seconds * SECOND_NS)
        self.service.wall_ns += int(seconds * SECOND_NS)

    def fill_arena(self, room: int = 0) -> None:
        """Leave no more than so much room in this turn."""
        assert self.arena.reserve(self.arena.room() - room) >= 0

    def flush(self) -> None:
        """End the turn: everyone who reads gets what is owed, doors learn who is over."""
        service = self.service
        ended = withdraw_ended(service)
        if service.is_review_due:
            review(service)
        if service.laning is not None and service.router.is_changed:
            service.router.is_changed = False
            service.laning.look_at_routes()
        if service.router.journal is not None:
            service.router.journal.keep()
        position = 0
        while position < len(self.arena.waiting):
            outbox: Outbox = self.arena.waiting[position]
            position += 1
            guest = self.guests[outbox.owner.number] if outbox.owner else None
            if guest is not None and guest.is_reading:
                guest.take_turn()
            outbox.settle(service.now_ns)
            if guest is not None and guest.is_reading:
                guest.take_backlog()
        self.arena.reset()
        for peer in ended:
            if peer.door is not None:
                peer.door.finish()


class Guest:
    """One peer as its client sees it."""

    def __init__(self, house: House, peer: Peer, door: NotedDoor) -> None:
        self.house = house
        self.peer = peer
        self.door = door
        self.is_reading = True
        self.decoder = Decoder(64 << 20)

    @property
    def inbox(self) -> bytes:
        return self.peer.inbox

    def send(self, data: bytes) -> None:
        """Hand bytes in as reads of one turn would."""
        while data:
            count = READ_BYTES
            if self.peer.large_size > 0 and not self.peer.is_over:
                count = len(self.peer.large) - self.peer.large_fill
            self._read(data[:count])
            data = data[count:]

    def say(self, *frames: bytes) -> list[Frame]:
        """Send frames, end the turn, and return what was heard."""
        self.send(b"".join(frames))
        self.house.flush()
        return self.heard()

    def heard(self) -> list[Frame]:
        """What came since the last time."""
        return [parse(frame) for frame in iter(self.decoder.next_frame, None)]

    def take_turn(self) -> None:
        """Read what lies in the arena."""
        outbox = self.peer.outbox
        while outbox.pending > 0 and not outbox.is_behind():
            start = outbox.gather()
            self.decoder.feed(bytes(outbox.arena.data[start : start + outbox.gathered]))
            outbox.sent(outbox.gathered)

    def take_backlog(self) -> None:
        """Read what was held."""
        outbox = self.peer.outbox
        while outbox.is_behind():
            piece = bytes(outbox.take(65_536, self.house.service.now_ns))
            self.decoder.feed(piece)
            outbox.taken(len(piece))

    def _read(self, data: bytes) -> None:
        arena = self.house.arena
        peer = self.peer
        if peer.is_over:
            return
        if peer.large_size == 0:
            start = arena.put(peer.rest)
            assert arena.put(data) >= 0
            feed(peer, start, arena.fill)
            return
        peer.large[peer.large_fill : peer.large_fill + len(data)] = data
        if took_large(peer, len(data)):
            start = arena.put(peer.large)
            drop_large(peer)
            feed(peer, start, arena.fill)


def connect(
    service: bytes = b"weather", name: bytes = b"", flags: int = 0, **options: Any
) -> bytes:
    body = Message(**options).encode() if options else b""
    return encode(Kind.CONNECT, service, body, name, flags)


def subscribe(
    pattern: bytes = b"", group: bytes = b"", flags: int = ANSWER, **options: Any
) -> bytes:
    body = Message(**options).encode() if options else b""
    return encode(Kind.SUBSCRIBE, pattern, body, group, flags)


def unsubscribe(
    pattern: bytes = b"", group: bytes = b"", flags: int = ANSWER, **options: Any
) -> bytes:
    body = Message(**options).encode() if options else b""
    return encode(Kind.UNSUBSCRIBE, pattern, body, group, flags)


def message(subject: bytes, body: bytes = b"hi", reply: bytes = b"", flags: int = 0) -> bytes:
    return encode(Kind.MESSAGE, subject, body, reply, flags | Flag.BARE)


def request(guest: Guest, subject: bytes, name: bytes = b"1", flags: int = 0) -> bytes:
    return message(subject, b"?", guest.inbox + name, flags | REQUEST)


def ask(guest: Guest, question: str, **options: Any) -> dict[str, Any]:
    """What the gateway answers about itself, or the error it gives."""
    body = Message(**options).encode()
    subject = f"_WEFT.ask.{question}".encode()
    (answer,) = guest.say(encode(Kind.MESSAGE, subject, body, guest.inbox + b"ask", REQUEST))
    return fields(answer)


def fields(frame: Frame) -> dict[str, Any]:
    """What the body of a frame says."""
    return Message.from_body(frame.body).to_dict()


def errors(frames: list[Frame]) -> list[str]:
    """The names of the errors among frames, in order."""
    return [fields(frame)["name"] for frame in frames if frame.kind == Kind.ERROR]


def kinds(frames: list[Frame]) -> list[Kind]:
    return [Kind(frame.kind) for frame in frames]


def bodies(frames: list[Frame]) -> list[bytes]:
    """The bodies of the messages among frames, in order."""
    return [frame.body for frame in frames if frame.kind == Kind.MESSAGE]
