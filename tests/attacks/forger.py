"""A client that may only serve `evil.>`, and floods the inbox of whoever asked it once."""

import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.attacks.siege import Siege
from tests.attacks.stranger import CONNECT, message, subscribe

from weft.broker.service import INBOX_BYTES
from weft.wire.frames import Flag, Kind, Stamp, encode, stamp_frame
from weft.wire.message.message import Message

GUESSES_MAX = 40
FORGED = b"forged"


class Forger:
    """What it learns from one request, and what it makes of that."""

    def __init__(self, siege: Siege) -> None:
        self._stranger = siege.stranger(CONNECT + subscribe(b"evil.>"))
        self._stranger.hear_until_pong()

    def learn_inbox(self) -> bytes:
        """Answer one request; the inbox that it came from, with its last dot."""
        asked = self._stranger.hear(Kind.MESSAGE)
        self._stranger.send(message(asked.reply, b"evil's own"))
        return asked.reply[: INBOX_BYTES + 1]

    def flood(self, frames: bytes) -> None:
        """Send frames, and wait until the gateway has dealt with them."""
        self._stranger.send(frames)
        self._stranger.hear_until_pong()

    @contextmanager
    def flooding(self, frames: bytes) -> Iterator[None]:
        """Send frames over and over while a block runs, and read what is said to them."""
        is_over = threading.Event()
        sock = self._stranger.socket

        def go_on() -> None:
            while not is_over.is_set():
                self._stranger.send(frames)
                while select.select([sock], [], [], 0)[0] and sock.recv(1 << 16):
                    pass

        thread = threading.Thread(target=go_on, name="forger")
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


def forgeries(inbox: bytes, body: bytes, flags: int = Flag.BARE) -> bytes:
    """A message to every name in an inbox that counts what was asked."""
    numbers = range(1, GUESSES_MAX)
    names = {
        form % number
        for form in (b"%d", b"%x", b"recall.%d", b"g.%d", b"%016x", b"g.%016x", b"recall.%016x")
        for number in numbers
    }
    return b"".join(encode(Kind.MESSAGE, inbox + name, body, flags=flags) for name in names)


def forged_page(*frames: bytes) -> bytes:
    """The body of a page of history with frames of anybody."""
    page = Message(node="besieged", next=9, head=9, missing=0, left=0, frames=b"".join(frames))
    return page.encode()


def forged_message(subject: bytes) -> bytes:
    """A message in the name of another, from the gateway of another."""
    frame = bytearray(message(subject, FORGED))
    stamp_frame(frame, 0, Stamp(77, publisher=5, sequence=1 << 40, time_ns=1))
    return bytes(frame)


def forged_goodbye() -> bytes:
    """A goodbye that leads elsewhere."""
    body = Message(reason="draining", text="go", elsewhere=["127.0.0.1:1"]).encode()
    return encode(Kind.GOODBYE, body=body)
