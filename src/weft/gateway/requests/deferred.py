"""Deferred responses: requests that are answered in a later turn."""

from typing import NamedTuple

from weft.broker.replies import error_frame, told
from weft.broker.service import Peer
from weft.errors import BadOption, WeftError
from weft.transports.loop.turn import Turn
from weft.wire.buffer import Writer
from weft.wire.frames import Flag, Kind, stamp_frame
from weft.wire.message.message import Message

_REFUSED = (int(Kind.MESSAGE), int(Flag.REQUEST))


def too_long(message: Message, limit_bytes: int) -> BadOption | None:
    """Return the error of a response that exceeds the largest body; None if it fits."""
    writer = Writer()
    message.put(writer)
    size = len(writer.take())
    if size <= limit_bytes:
        return None
    return BadOption(f"an answer of {size} bytes is over the limit of {limit_bytes}: ask for less")


class DeferredRequest(NamedTuple):
    """Requester, reply subject and name of a pending request."""

    peer: Peer
    reply: bytes
    question: str

    def answer(self, turn: Turn, message: Message) -> None:
        """Send the response."""
        service = turn.service
        frame = bytearray(told(self.peer, Kind.MESSAGE, self.reply, b"", message))
        publisher, service.stamp.publisher = service.stamp.publisher, 0
        stamp_frame(frame, 0, service.stamp)
        service.stamp.publisher = publisher
        self.peer.owe(bytes(frame))
        turn.wake()

    def refuse(self, turn: Turn, error: WeftError) -> None:
        """Send an error as the response."""
        turn.service.count_refused(type(error).__name__)
        subject = f"_WEFT.ask.{self.question}".encode()
        self.peer.owe(error_frame(self.peer, subject, self.reply, _REFUSED, error))
        turn.wake()
