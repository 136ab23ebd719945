"""A connection that says what no client would, and notes what it hears."""

import contextlib
import socket
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from tests.attacks.gateway_process import WAIT_S

from weft.wire.frames import Decoder, Flag, Frame, Kind, encode, parse
from weft.wire.message.message import Message

CONNECT = encode(Kind.CONNECT, b"default")


class Stranger:
    """One TCP connection; it has sent its greeting, a proper one unless told otherwise."""

    def __init__(self, port: int, greeting: bytes = CONNECT, receive_buffer: int = 0) -> None:
        self.socket = socket.socket()
        if receive_buffer:
            # Before it connects: what the other side may send at once depends on it.
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(WAIT_S)
        try:
            self.socket.connect(("127.0.0.1", port))
        except OSError:
            self.socket.close()
            raise
        self._decoder = Decoder(64 << 20)
        self.send(greeting)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.socket.close()

    def send(self, *frames: bytes) -> None:
        """Send bytes; one that was cut meanwhile sends into the void, as strangers do."""
        with contextlib.suppress(ConnectionError):
            self.socket.sendall(b"".join(frames))

    def end_sending(self) -> None:
        """Send nothing more, and go on listening."""
        self.socket.shutdown(socket.SHUT_WR)

    def hear(self, kind: Kind | None = None) -> Frame:
        """The next frame, or the next of a kind: then what comes before it is passed over."""
        while True:
            frame = self._next()
            if frame is None:
                raise AssertionError(f"the connection ended before any {kind}")
            if kind in (None, frame.kind):
                return frame

    def is_welcome(self) -> bool:
        """Say if it was let in; False if the connection ends instead."""
        frame = self._next()
        return frame is not None and frame.kind == Kind.WELCOME

    def frames(self) -> Iterator[Frame]:
        """One frame after the other up to the end of the connection."""
        return iter(self._next, None)

    def hear_all(self) -> list[Frame]:
        """Everything up to the end of the connection."""
        return list(self.frames())

    def hear_bytes(self) -> bytes:
        """Everything up to the end of the connection, whatever it means."""
        return b"".join(iter(self._receive, b""))

    def hear_end(self) -> str:
        """The name of the error that the connection is ended with; empty if there is none."""
        heard = self.hear_all()
        # A gateway waits a while for this, so that the error is not lost on the way. Not closed:
        # another thread may still be sending.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        return error_name(heard[-1]) if heard and heard[-1].kind == Kind.ERROR else ""

    def hear_until_pong(self) -> list[Frame]:
        """Everything that the gateway has to say to what was sent so far."""
        self.send(encode(Kind.PING, body=b"so far"))
        heard: list[Frame] = []
        while True:
            frame = self._next()
            assert frame is not None, [frame.kind for frame in heard]
            if frame.kind == Kind.PONG and frame.body == b"so far":
                return heard
            heard.append(frame)

    def hear_errors(self) -> list[str]:
        """The names of the errors in answer to what was sent so far; the connection goes on."""
        return [error_name(frame) for frame in self.hear_until_pong() if frame.kind == Kind.ERROR]

    def inbox(self) -> bytes:
        """The inbox that the gateway gave it; its WELCOME must not have been heard yet."""
        inbox: str = fields(self.hear(Kind.WELCOME))["inbox"]
        return inbox.encode()

    def _next(self) -> Frame | None:
        while True:
            frame = self._decoder.next_frame()
            if frame is not None:
                return parse(frame)
            data = self._receive()
            if not data:
                return None
            self._decoder.feed(data)

    def _receive(self) -> bytes:
        """What comes next; nothing at the end, in whatever way that comes."""
        try:
            return self.socket.recv(65_536)
        except ConnectionError:
            return b""


def fields(frame: Frame) -> dict[str, Any]:
    """What the body of a frame says."""
    return Message.from_body(frame.body).to_dict()


def error_name(frame: Frame) -> str:
    """The name that an ERROR gives."""
    name: str = fields(frame)["name"]
    return name


def connect(service: bytes = b"default", name: bytes = b"", **options: Any) -> bytes:
    body = Message(**options).encode() if options else b""
    return encode(Kind.CONNECT, service, body, name)


def subscribe(pattern: bytes, group: bytes = b"", flags: int = 0, **options: Any) -> bytes:
    body = Message(**options).encode() if options else b""
    return encode(Kind.SUBSCRIBE, pattern, body, group, flags)


def message(subject: bytes, body: bytes = b"", reply: bytes = b"", flags: int = 0) -> bytes:
    return encode(Kind.MESSAGE, subject, body, reply, flags | Flag.BARE)


def request(subject: bytes, reply: bytes, body: bytes = b"?") -> bytes:
    return message(subject, body, reply, Flag.REQUEST)
