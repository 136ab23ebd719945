"""A message as it was received: its fields, and where it came from, where to and when.

A `Message` never knows its connection, because it may be published on any. This is the pair of a
message and the connection it came by. Every reading method is the message's own, by name. Nothing
is made of the frame until somebody asks.
"""

from collections.abc import Coroutine, Iterator
from datetime import datetime
from typing import Any, Protocol

from weft.errors import ConnectionLost, Overloaded, RequestFailed, UsageError, WrongType
from weft.wire.frames import Flag
from weft.wire.message.message import Field, Message, message_in
from weft.wire.request_failure import failure_in, failure_message, is_failure

# What a requester gets if a handler raised: no more than that.
FAILED = "the responder failed; its log says why"

_REQUEST = int(Flag.REQUEST)


class Publisher(Protocol):
    """The blocking connection that a received message is answered through."""

    def answer(self, asked: bytes, body: Any, *, is_failure: bool = False) -> None:
        """Publish the answer to a message that was received in a frame."""


class AsyncPublisher(Protocol):
    """The asyncio connection that a received message is answered through."""

    def answer(
        self, asked: bytes, body: Any, *, is_failure: bool = False
    ) -> Coroutine[Any, Any, None]:
        """Publish the answer to a message that was received in a frame."""


class Received:
    """A received message; `message` is what can be kept, compared and published again."""

    _publisher: Any

    def __init__(self, frame: bytes) -> None:
        self._frame = frame
        self._message: Message | None = None
        self._is_answered = False

    @property
    def message(self) -> Message:
        """The message alone, which knows no connection."""
        return self._read()

    @property
    def subject(self) -> str:
        """What it was sent to."""
        return self._read().subject

    @property
    def reply(self) -> str:
        """Where an answer is awaited; empty if none is."""
        return self._read().reply

    @property
    def origin(self) -> int:
        """The number of the gateway it entered at."""
        return self._read().origin

    @property
    def publisher(self) -> int:
        """The number of the connection that published it, at its origin."""
        return self._read().publisher

    @property
    def sequence(self) -> int:
        """Its number among the messages of its origin and service."""
        return self._read().sequence

    @property
    def time(self) -> int:
        """When it entered, in ns since the epoch."""
        return self._read().time

    @property
    def error(self) -> RequestFailed | None:
        """What the responder said instead of an answer; None for any other message."""
        return failure_in(self._frame) if is_failure(self._frame) else None

    @property
    def is_waiting(self) -> bool:
        """Whether this is a request that nobody else can answer, and that has no answer yet."""
        return self._frame[5] & _REQUEST != 0 and not self._is_answered

    @property
    def payload(self) -> bytes:
        """The bytes of a message that was published as bytes; WrongType if it was not."""
        return self._read().payload

    @property
    def text(self) -> str:
        """The text of a message that was published as a str; WrongType if it was not."""
        message = self._read()
        if len(message) != 1 or "" not in message:
            raise WrongType("this message is not bare text: it has fields of its own")
        return message.get_string("")

    def __getitem__(self, name: str) -> Any:
        return self._read()[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The value of the first field of this name, or the default if there is none."""
        return self._read().get(name, default)

    def get_string(self, name: str) -> str:
        """The value of a string field; WrongType if it is another type."""
        return self._read().get_string(name)

    def get_int32(self, name: str) -> int:
        """The value as an int32; WrongType if it is no number, or not the same there."""
        return self._read().get_int32(name)

    def get_uint32(self, name: str) -> int:
        """The value as a uint32; WrongType if it is no number, or not the same there."""
        return self._read().get_uint32(name)

    def get_int64(self, name: str) -> int:
        """The value as an int64; WrongType if it is no number, or not the same there."""
        return self._read().get_int64(name)

    def get_uint64(self, name: str) -> int:
        """The value as a uint64; WrongType if it is no number, or not the same there."""
        return self._read().get_uint64(name)

    def get_double(self, name: str) -> float:
        """The value as a double; WrongType if it is no number, or not the same there."""
        return self._read().get_double(name)

    def get_bool(self, name: str) -> bool:
        """The value of a bool field; WrongType if it is another type."""
        return self._read().get_bool(name)

    def get_blob(self, name: str) -> bytes:
        """The value of a blob field; WrongType if it is another type."""
        return self._read().get_blob(name)

    def get_message(self, name: str) -> Message:
        """The message in a message field; WrongType if it is another type."""
        return self._read().get_message(name)

    def get_list(self, name: str) -> list[Any]:
        """The values of a list field; WrongType if it is another type."""
        return self._read().get_list(name)

    def get_timestamp(self, name: str) -> datetime:
        """The moment in a timestamp field; WrongType if it is another type."""
        return self._read().get_timestamp(name)

    def get_timestamp_ns(self, name: str) -> int:
        """The ns since the epoch in a timestamp field, which a datetime would round down to µs."""
        return self._read().get_timestamp_ns(name)

    def fields(self, name: str | None = None) -> list[Field]:
        """All fields in order, or all of one name."""
        return self._read().fields(name)

    def to_dict(self) -> dict[str, Any]:
        """A dict of the values; of a name that occurs twice, the first."""
        return self._read().to_dict()

    def to_json(self) -> str:
        """A JSON object of the values; of a name that occurs twice, the first."""
        return self._read().to_json()

    def __iter__(self) -> Iterator[Field]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __bool__(self) -> bool:
        # A message without fields is still a message.
        return True

    def __contains__(self, name: object) -> bool:
        return name in self._read()

    def __repr__(self) -> str:
        return repr(self._read())

    def __copy__(self) -> "Received":
        # It never changes, and whether it was answered is one fact about all copies.
        return self

    def __deepcopy__(self, memo: object) -> "Received":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """What another process gets knows no connection, so it cannot be answered there."""
        return Received, (self._frame,)

    def _read(self) -> Message:
        message = self._message
        if message is None:
            message = message_in(self._frame)
            self._message = message
        return message

    def _answer(self, body: Any, is_failure: bool) -> Any:
        """Answer, and note that; what publishing gives."""
        if not self._read().reply:
            raise UsageError(f"nobody awaits an answer to this message to {self.subject!r}")
        # Whoever asked many may be answered several times by each.
        if self._is_answered and self._frame[5] & _REQUEST:
            raise UsageError(f"this request to {self.subject!r} was answered already")
        try:
            published = self._publisher.answer(self._frame, body, is_failure=is_failure)
        except ConnectionLost as error:
            # Whoever asked was told that nobody answers.
            self._is_answered = not isinstance(error, Overloaded)
            raise
        self._is_answered = True
        return published


class AsyncReceived(Received):
    """A message received by an asyncio connection."""

    def respond(self, body: Any) -> Coroutine[Any, Any, None]:
        """Answer this message with anything that can be published; await what is returned.

        Like publish() it buffers the answer, or raises, when it is called.

        Raises:
            UsageError: nobody awaits an answer to it, or it was answered already.
            ConnectionLost: the connection that the request came by was lost, and its requester was
                told so.
        """
        waiting: Coroutine[Any, Any, None] = self._answer(body, False)
        return waiting

    def respond_error(self, text: str) -> Coroutine[Any, Any, None]:
        """Answer that it could not be done, and why: raised at the requester as RequestFailed.

        At most 1024 characters are sent. It raises what respond() raises.
        """
        waiting: Coroutine[Any, Any, None] = self._answer(failure_message(text), True)
        return waiting


class BlockingReceived(Received):
    """A message received by a blocking connection."""

    def respond(self, body: Any) -> None:
        """Answer this message with anything that can be published.

        Raises:
            UsageError: nobody awaits an answer to it, or it was answered already.
            ConnectionLost: the connection that the request came by was lost, and its requester was
                told so.
        """
        self._answer(body, False)

    def respond_error(self, text: str) -> None:
        """Answer that it could not be done, and why: raised at the requester as RequestFailed.

        At most 1024 characters are sent. It raises what respond() raises.
        """
        self._answer(failure_message(text), True)


def async_received(frame: bytes, publisher: AsyncPublisher) -> AsyncReceived:
    """The message in a frame that an asyncio connection received."""
    message = AsyncReceived.__new__(AsyncReceived)
    message._frame = frame
    message._message = None
    message._is_answered = False
    message._publisher = publisher
    return message


def blocking_received(frame: bytes, publisher: Publisher) -> BlockingReceived:
    """The message in a frame that a blocking connection received."""
    message = BlockingReceived.__new__(BlockingReceived)
    message._frame = frame
    message._message = None
    message._is_answered = False
    message._publisher = publisher
    return message


def frame_of(message: Received) -> bytes:
    """The frame that a message was received in."""
    return message._frame
