"""What clients do in the mesh: publish, listen, share work in groups, ask and answer.

All note what they say and hear.
"""

import asyncio
import random
import struct
from collections import defaultdict, deque
from time import monotonic_ns

from tools.chaos.book import REFUSED, Book, gap
from tools.chaos.clients import Client, fields
from tools.chaos.gateways import Gateway

from weft.simulation.history import RequestRecord, SubscriberRecord
from weft.wire.byteops import u32_at, u64_at
from weft.wire.frames import HEADER_BYTES, Flag, Kind, encode
from weft.wire.message.message import Message

# How often a publisher says something.
TURN_S = 0.02
# What it did not say while it could not is made up for, but only so much of it.
BURST_S = 0.2

_ANSWER = int(Flag.ANSWER)
_BARE = int(Flag.BARE)
_REQUEST = int(Flag.REQUEST)
# Which life of a publisher, and its counter; what follows only makes it longer.
_BODY = struct.Struct(">IQ")


class Speaker(Client):
    """Says something now and then, until it is told to be quiet."""

    is_quiet = False

    async def _is_on(self, wait_s: float) -> bool:
        """Wait for its turn; False if it has none any more: it may have been told meanwhile."""
        await asyncio.sleep(wait_s)
        return not self.is_quiet


class Publisher(Speaker):
    """Publishes to its subjects in turn, at a rate, and notes what was acknowledged."""

    def __init__(
        self, name: str, gateway: Gateway, book: Book, subjects: list[str], rate: float
    ) -> None:
        super().__init__(name, gateway, book)
        self.life = -1
        self.open = 0
        self._subjects = subjects
        self._rate = rate
        self._turn = 0
        self._waiting: dict[bytes, deque[int]] = defaultdict(deque)

    async def publish(self) -> None:
        """Publish until it is told to be quiet."""
        before_ns = monotonic_ns()
        due = 0.0
        while await self._is_on(TURN_S):
            now_ns = monotonic_ns()
            due = min(due + self._rate * (now_ns - before_ns) / 1e9, self._rate * BURST_S)
            before_ns = now_ns
            if self.is_free and due >= 1:
                self.send(b"".join(self._next() for _ in range(int(due))))
                due -= int(due)

    @property
    def last(self) -> tuple[int, int]:
        """The last message of this life: its life, and its counter."""
        return self.life, len(self.book.lives[self.life].subjects) - 1

    def begin(self) -> None:
        """Begin a life of its own: what it said before is another's."""
        self._waiting.clear()
        self.open = 0
        self.life = self.book.begin(self.name, self.gateway.number, self.origin)

    def hear_other(self, frame: bytes) -> None:
        """An OK tells under which number a message entered, an ERROR that it did not."""
        sequence = u64_at(frame, 16)
        if frame[4] != Kind.OK:
            self.book.ends[f"publisher {fields(frame)['name']}"] += 1
            sequence = REFUSED
        if frame[5] & _ANSWER:
            subject = frame[HEADER_BYTES : HEADER_BYTES + frame[6]]
            counter = self._waiting[subject].popleft()
            self.open -= 1
            self.book.lives[self.life].sequences[counter] = sequence

    def _next(self) -> bytes:
        subject = self._subjects[self._turn % len(self._subjects)]
        self._turn += 1
        counter = self.book.publish(self.life, subject)
        self.open += 1
        self._waiting[subject.encode()].append(counter)
        body = _BODY.pack(self.life, counter) + bytes(self._turn % 7 * 40)
        return encode(Kind.MESSAGE, subject.encode(), body, flags=_ANSWER | _BARE)


class Subscriber(Client):
    """Hears what it is subscribed to, alone or as a member of a group."""

    def __init__(
        self, name: str, gateway: Gateway, book: Book, patterns: tuple[str, ...], group: str = ""
    ) -> None:
        super().__init__(name, gateway, book)
        self.patterns = patterns
        self.group = group
        self.session: SubscriberRecord | None = None

    @property
    def is_listening(self) -> bool:
        """Say if the gateway has said that it is subscribed."""
        return self.session is not None and self.session.began_ns > 0

    def begin(self) -> None:
        """Subscribe."""
        self.session = SubscriberRecord(
            self.name, self.origin, self.patterns, self.group, 0, events=[]
        )
        first, *others = self.patterns
        body = Message(patterns=others).encode() if others else b""
        self.send(encode(Kind.SUBSCRIBE, first.encode(), body, self.group.encode(), _ANSWER))

    def hear(self, frame: bytes) -> None:
        """Note a message."""
        number, counter = _BODY.unpack_from(frame, HEADER_BYTES + frame[6] + frame[7])
        if self.session is not None:
            heard = self.book.hear(number, counter, u32_at(frame, 8), u64_at(frame, 16))
            self.session.events.append(heard)

    def hear_other(self, frame: bytes) -> None:
        """Note a gap, and that it is subscribed."""
        if self.session is None:
            return
        if frame[4] == Kind.GAP:
            self.session.events.append(gap(u32_at(frame, 8), fields(frame)["count"]))
        elif frame[4] == Kind.OK:
            self.session.began_ns = monotonic_ns()
            self.book.sessions.append(self.session)
        else:
            self.book.ends[f"subscriber {fields(frame)['name']}"] += 1

    def end(self) -> None:
        """What it hears in its next connection is another session."""
        if self.session is not None and not self.is_over:
            self.session.ended_ns = monotonic_ns()
        self.session = None


class Listener(Subscriber):
    """Hears the probes of all gateways."""

    def __init__(self, name: str, gateway: Gateway, book: Book, patterns: tuple[str, ...]) -> None:
        super().__init__(name, gateway, book, patterns)
        # How far each life of a publisher was heard, and of which gateways a gap came since.
        self.reached: dict[int, int] = {}
        self.missed: set[int] = set()

    def hear(self, frame: bytes) -> None:
        """Note when a probe came."""
        super().hear(frame)
        number, counter = _BODY.unpack_from(frame, HEADER_BYTES + frame[6] + frame[7])
        self.reached[number] = counter
        self.missed.discard(u32_at(frame, 8))
        self.book.probe(number, counter, self.gateway.number)

    def hear_other(self, frame: bytes) -> None:
        """Note that a probe may not come."""
        super().hear_other(frame)
        if frame[4] == Kind.GAP:
            self.missed.add(u32_at(frame, 8))


class Visitor(Subscriber):
    """Comes and goes, each time for something else."""

    def __init__(
        self, name: str, gateway: Gateway, book: Book, wishes: list[str], chance: random.Random
    ) -> None:
        super().__init__(name, gateway, book, (wishes[0],))
        self.is_staying = False
        self._wishes = wishes
        self._chance = chance

    async def come_and_go(self) -> None:
        """Go after a while, until it is told to stay."""
        while not self.is_staying:
            await asyncio.sleep(self._chance.uniform(0.5, 4.0))
            if self.is_listening and not self.is_staying:
                self.patterns = (self._chance.choice(self._wishes),)
                self.drop()


class Requester(Speaker):
    """Asks, and notes what it is answered."""

    def __init__(self, name: str, gateway: Gateway, book: Book, rate: float) -> None:
        super().__init__(name, gateway, book)
        self.open: dict[bytes, RequestRecord] = {}
        # Answers to what was asked before may come twice, which must be noted.
        self._all: dict[bytes, RequestRecord] = {}
        self._rate = rate
        self._counter = 0

    async def ask(self) -> None:
        """Ask until it is told to be quiet."""
        while await self._is_on(1 / self._rate):
            if self.is_free:
                self._counter += 1
                reply = b"%b.%d" % (self.inbox, self._counter)
                asked = RequestRecord(
                    f"{self.name} of {self.origin}", self._counter, monotonic_ns()
                )
                self.open[reply] = self._all[reply] = asked
                self.book.asked.append(asked)
                self.send(encode(Kind.MESSAGE, b"ask.work", b"?", reply, _REQUEST | _BARE))

    def hear(self, frame: bytes) -> None:
        """Note an answer."""
        self._settle(frame[HEADER_BYTES : HEADER_BYTES + frame[6]], answers=1)

    def hear_other(self, frame: bytes) -> None:
        """Note a refusal."""
        names = HEADER_BYTES + frame[6]
        if frame[4] == Kind.ERROR:
            self.book.ends[f"request {fields(frame)['name']}"] += 1
            self._settle(frame[names : names + frame[7]], answers=0)

    def end(self) -> None:
        """Give up what is open: nobody could be told."""
        for asked in self.open.values():
            asked.is_given_up = True
        self.open.clear()
        self._all.clear()

    def _settle(self, reply: bytes, answers: int) -> None:
        self.open.pop(reply, None)
        asked = self._all.get(reply)
        if asked is not None:
            asked.answers += answers
            asked.refusals += 1 - answers


class Responder(Client):
    """Answers what it is asked."""

    def begin(self) -> None:
        """Be there for questions, together with the others."""
        self.send(encode(Kind.SUBSCRIBE, b"ask.*", b"", b"desk", _ANSWER))

    def hear(self, frame: bytes) -> None:
        """Answer."""
        names = HEADER_BYTES + frame[6]
        reply = frame[names : names + frame[7]]
        self.send(encode(Kind.MESSAGE, reply, b"!", flags=_BARE))
