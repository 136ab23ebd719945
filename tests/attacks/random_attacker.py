"""An attacker that knows the protocol and bends what it says, at random but by a seed."""

import contextlib
import random
import socket
import struct
from collections import deque

from tests.attacks.gateway_process import WAIT_S
from tests.attacks.stranger import CONNECT, connect, fields, message, request, subscribe

from weft.wire.frames import Decoder, Flag, Kind, encode, parse
from weft.wire.message.message import Message

# So many connections are open at once: enough for them to meet, few enough to come and go.
AT_ONCE = 40
_RESET = struct.pack("ii", 1, 0)
_SUBJECTS = (
    b"a",
    b"a.b",
    b"a.b.c",
    b"a.b.c.d",
    b"x.%d",
    b"_LOCAL.a",
    b"_INBOX.a.b",
    b"_WEFT.ask.status",
)
_PATTERNS = (
    *_SUBJECTS,
    b">",
    b"*",
    b"a.*",
    b"a.>",
    b"*.b.>",
    b"a.b*",
    b"_WEFT.event.>",
    b"_INBOX.>",
)
_POLICIES = ("cut", "drop_new", "drop_old", "latest", "none")
_QUESTIONS = (b"status", b"connections", b"subscriptions", b"subscribers", b"flows", b"nothing")


class RandomAttacker:
    """Opens connections, says things that are nearly right, and leaves in some way or other."""

    def __init__(self, port: int, seed: int) -> None:
        self._port = port
        self._chance = random.Random(seed)
        self._open: deque[socket.socket] = deque()

    def attack(self, connections: int) -> None:
        """Attack with so many connections, one after the other; none is left open."""
        try:
            for _ in range(connections):
                self._open.append(self._connected())
                if len(self._open) > AT_ONCE:
                    self._leave(self._open.popleft())
        finally:
            while self._open:
                self._leave(self._open.popleft())

    def _connected(self) -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", self._port), timeout=WAIT_S)
        # Most get in first, or they would be turned away before they said much.
        inbox = self._greet(sock) if self._chance.random() < 0.6 else b""
        sock.setblocking(False)
        data = b"".join(self._bent(self._said(inbox)))
        # In pieces: how bytes are split must not matter.
        with contextlib.suppress(ConnectionError, BlockingIOError):
            while data:
                piece = self._chance.choice((1, 7, 33, 1000, 70_000, len(data)))
                sock.send(data[:piece])
                data = data[piece:]
                if self._chance.random() < 0.2:
                    sock.recv(65_536)
        return sock

    def _leave(self, sock: socket.socket) -> None:
        how = self._chance.randrange(4)
        with contextlib.suppress(ConnectionError, BlockingIOError, OSError):
            if how == 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            elif how == 1:
                sock.shutdown(socket.SHUT_WR)
                sock.recv(65_536)
            elif how == 2:
                sock.send(encode(Kind.GOODBYE))
        sock.close()

    def _greet(self, sock: socket.socket) -> bytes:
        """Say who it is, properly; the inbox that it is given."""
        sock.sendall(CONNECT)
        decoder = Decoder()
        while (frame := decoder.next_frame()) is None:
            decoder.feed(sock.recv(4096))
        inbox: str = fields(parse(frame))["inbox"]
        return inbox.encode()

    def _said(self, inbox: bytes) -> list[bytes]:
        """A conversation that is proper but for some names and options."""
        said = []
        if not inbox:
            inbox = self._guessed_inbox()
            said.append(connect(name=self._chance.choice((b"", b"me.1", b"a.*")), version=1))
        for _ in range(self._chance.randrange(12)):
            say = self._chance.choice((self._wish, self._word, self._question, self._courtesy))
            said.append(say(inbox) * self._chance.choice((1, 1, 1, 2, 50)))
        return said

    def _guessed_inbox(self) -> bytes:
        return b"_INBOX.%08x.%024x" % (self._chance.randrange(16), self._chance.randrange(16))

    def _name(self, names: tuple[bytes, ...]) -> bytes:
        name = self._chance.choice(names)
        return name % self._chance.randrange(10_000) if b"%d" in name else name

    def _wish(self, _: bytes) -> bytes:
        if self._chance.random() < 0.3:
            return encode(Kind.UNSUBSCRIBE, self._name(_PATTERNS), flags=self._flags())
        options: dict[str, object] = {"policy": self._chance.choice(_POLICIES)}
        if self._chance.random() < 0.3:
            names = [self._name(_PATTERNS).decode() for _ in range(self._chance.randrange(20))]
            options["patterns"] = names
        group = self._chance.choice((b"", b"", b"g", b"g.h", b"*"))
        return subscribe(self._name(_PATTERNS), group, self._flags(), **options)

    def _word(self, inbox: bytes) -> bytes:
        body = self._chance.randbytes(self._chance.choice((0, 1, 100, 10_000, 80_000)))
        reply = self._chance.choice((b"", b"", b"a.b", inbox + b".1", b"a..b"))
        return message(self._name(_SUBJECTS), body, reply, self._flags())

    def _question(self, inbox: bytes) -> bytes:
        if self._chance.random() < 0.5:
            return request(self._name(_SUBJECTS), inbox + b".%d" % self._chance.randrange(9))
        body = Message(limit=self._chance.choice((1, 10, -1)), subject="a.b").encode()
        subject = b"_WEFT.ask." + self._chance.choice(_QUESTIONS)
        return encode(Kind.MESSAGE, subject, body, inbox + b".1", Flag.REQUEST)

    def _courtesy(self, _: bytes) -> bytes:
        kind = self._chance.choice((Kind.PING, Kind.PONG, Kind.PING, Kind.GOODBYE, Kind.GAP))
        return encode(kind, body=self._chance.randbytes(self._chance.randrange(70)))

    def _flags(self) -> int:
        return self._chance.choice((0, 0, Flag.ANSWER, Flag.NOT_BACK, Flag.REQUEST, 0xF0, 0xFF))

    def _bent(self, said: list[bytes]) -> list[bytes]:
        """The same with some of it bent."""
        for at in range(len(said)):
            if self._chance.random() < 0.15:
                said[at] = self._bend(bytearray(said[at]))
        if self._chance.random() < 0.2:
            self._chance.shuffle(said)
        return said

    def _bend(self, frame: bytearray) -> bytes:
        chance = self._chance
        match chance.randrange(7):
            case 0:
                frame[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)
            case 1:
                del frame[chance.randrange(len(frame)) :]
            case 2:
                frame[:4] = struct.pack("<I", chance.choice((0, 31, 32, 1 << 20, 1 << 31)))
            case 3:
                frame[chance.choice((4, 5, 6, 7))] = chance.randrange(256)
            case 4:
                frame[8:8] = chance.randbytes(chance.randrange(64))
            case 5:
                frame += chance.randbytes(chance.randrange(200))
            case _:
                at = chance.randrange(len(frame))
                frame[at : at + 8] = chance.randbytes(8)
        return bytes(frame)
