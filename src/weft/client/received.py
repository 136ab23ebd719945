"""Received messages: a message together with the connection that received it.

A `Message` has no connection, because it can be published on any. `Received` adds the connection,
so that it can be answered, and offers the reading methods of `Message` by the same names. The frame
is decoded on first access.
"""

from collections.abc import Coroutine, Iterator
from datetime import datetime
from typing import Any, Protocol

from weft.errors import ConnectionLost, Overloaded, RequestFailed, UsageError, WrongType
from weft.wire.frames import Flag
from weft.wire.message.message import Field, Message, message_in
from weft.wire.request_failure import failure_in, failure_message, is_failure

# Sent to the requester if a handler raised; details stay in the responder's log.
FAILED = "the responder failed; its log says why"

_REQUEST = int(Flag.REQUEST)


class Publisher(Protocol):
    """Interface of the blocking connection through which a received message is answered."""

    def answer(self, asked: bytes, body: Any, *, is_failure: bool = False) -> None:
        """Publish the answer to the message in frame `asked`."""


class AsyncPublisher(Protocol):
    """Interface of the asyncio connection through which a received message is answered."""

    def answer(
        self, asked: bytes, body: Any, *, is_failure: bool = False
    ) -> Coroutine[Any, Any, None]:
        """Publish the answer to the message in frame `asked`."""


class Received:
    """A received message; `message` is the part that can be stored, compared and published."""

    _publisher: Any

    def __init__(self, frame: bytes) -> None:
        self._frame = frame
        self._message: Message | None = None
        self._is_answered = False

    @property
    def message(self) -> Message:
        """The message without its connection."""
        return self._read()

    @property
    def subject(self) -> str:
        """The subject it was published to."""
        return self._read().subject

    @property
    def reply(self) -> str:
        """The reply subject; empty if no answer is expected."""
        return self._read().reply

    @property
    def origin(self) -> int:
        """The number of the gateway that it was published at."""
        return self._read().origin

    @property
    def publisher(self) -> int:
        """The number of the connection that published it, unique at its origin."""
        return self._read().publisher

    @property
    def sequence(self) -> int:
        """Its sequence number among the messages of its origin and service."""
        return self._read().sequence

    @property
    def time(self) -> int:
        """The time at which its origin received it, in ns since the epoch."""
        return self._read().time

    @property
    def error(self) -> RequestFailed | None:
        """The responder's error if this is a failed answer, else None."""
        return failure_in(self._frame) if is_failure(self._frame) else None

    @property
    def is_waiting(self) -> bool:
        """Whether this is an unanswered request that only this receiver can answer."""
        return self._frame[5] & _REQUEST != 0 and not self._is_answered

    @property
    def payload(self) -> bytes:
        """The body of a message that was published as bytes.

        Raises:
            WrongType: It was published as something else.
        """
        return self._read().payload

    @property
    def text(self) -> str:
        """The text of a message that was published as a str.

        Raises:
            WrongType: It was published as something else.
        """
        message = self._read()
        if len(message) != 1 or "" not in message:
            raise WrongType("this message was not published as a str: it has named fields")
        return message.get_string("")

    def __getitem__(self, name: str) -> Any:
        return self._read()[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of the first field of this name, or the default."""
        return self._read().get(name, default)

    def get_string(self, name: str) -> str:
        """Return the value of a string field; WrongType for any other type."""
        return self._read().get_string(name)

    def get_int32(self, name: str) -> int:
        """Return the value as an int32; WrongType if not a number, or not exact as an int32."""
        return self._read().get_int32(name)

    def get_uint32(self, name: str) -> int:
        """Return the value as a uint32; WrongType if not a number, or not exact as a uint32."""
        return self._read().get_uint32(name)

    def get_int64(self, name: str) -> int:
        """Return the value as an int64; WrongType if not a number, or not exact as an int64."""
        return self._read().get_int64(name)

    def get_uint64(self, name: str) -> int:
        """Return the value as a uint64; WrongType if not a number, or not exact as a uint64."""
        return self._read().get_uint64(name)

    def get_double(self, name: str) -> float:
        """Return the value as a double; WrongType if not a number, or not exact as a double."""
        return self._read().get_double(name)

    def get_bool(self, name: str) -> bool:
        """Return the value of a bool field; WrongType for any other type."""
        return self._read().get_bool(name)

    def get_blob(self, name: str) -> bytes:
        """Return the value of a blob field; WrongType for any other type."""
        return self._read().get_blob(name)

    def get_message(self, name: str) -> Message:
        """Return the message in a message field; WrongType for any other type."""
        return self._read().get_message(name)

    def get_list(self, name: str) -> list[Any]:
        """Return the values of a list field; WrongType for any other type."""
        return self._read().get_list(name)

    def get_timestamp(self, name: str) -> datetime:
        """Return the time in a timestamp field, cut to µs; WrongType for any other type."""
        return self._read().get_timestamp(name)

    def get_timestamp_ns(self, name: str) -> int:
        """Return the time in a timestamp field in ns since the epoch."""
        return self._read().get_timestamp_ns(name)

    def fields(self, name: str | None = None) -> list[Field]:
        """Return all fields in order, or all fields of one name."""
        return self._read().fields(name)

    def to_dict(self) -> dict[str, Any]:
        """Return the values as a dict; of fields with the same name, the first."""
        return self._read().to_dict()

    def to_json(self) -> str:
        """Return the values as a JSON object; of fields with the same name, the first."""
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
        # Immutable, except that it is answered at most once: copies share that state.
        return self

    def __deepcopy__(self, memo: object) -> "Received":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the frame alone: without its connection a copy cannot be answered."""
        return Received, (self._frame,)

    def _read(self) -> Message:
        message = self._message
        if message is None:
            message = message_in(self._frame)
            self._message = message
        return message

    def _answer(self, body: Any, is_failure: bool) -> Any:
        """Publish an answer and mark the message as answered; return the result of publishing."""
        if not self._read().reply:
            raise UsageError(
                f"this message to {self.subject!r} expects no answer: it has no reply subject"
            )
        # A gathered request accepts several answers of each responder.
        if self._is_answered and self._frame[5] & _REQUEST:
            raise UsageError(f"this request to {self.subject!r} was answered already")
        try:
            published = self._publisher.answer(self._frame, body, is_failure=is_failure)
        except ConnectionLost as error:
            # The gateway has already reported to the requester that no answer comes.
            self._is_answered = not isinstance(error, Overloaded)
            raise
        self._is_answered = True
        return published


class AsyncReceived(Received):
    """A message received by an asyncio connection."""

    def respond(self, body: Any) -> Coroutine[Any, Any, None]:
        """Answer this message with any publishable body; await the result.

        Like publish(), it buffers the answer or raises when it is called, not when it is awaited.

        Raises:
            UsageError: The message expects no answer, or was answered already.
            ConnectionLost: The connection that received the request was lost, and the requester
                was notified.
        """
        waiting: Coroutine[Any, Any, None] = self._answer(body, False)
        return waiting

    def respond_error(self, text: str) -> Coroutine[Any, Any, None]:
        """Answer with an error, raised at the requester as RequestFailed.

        Sends at most 1024 characters. Raises the same errors as respond().
        """
        waiting: Coroutine[Any, Any, None] = self._answer(failure_message(text), True)
        return waiting


class BlockingReceived(Received):
    """A message received by a blocking connection."""

    def respond(self, body: Any) -> None:
        """Answer this message with any publishable body.

        Raises:
            UsageError: The message expects no answer, or was answered already.
            ConnectionLost: The connection that received the request was lost, and the requester
                was notified.
        """
        self._answer(body, False)

    def respond_error(self, text: str) -> None:
        """Answer with an error, raised at the requester as RequestFailed.

        Sends at most 1024 characters. Raises the same errors as respond().
        """
        self._answer(failure_message(text), True)


def async_received(frame: bytes, publisher: AsyncPublisher) -> AsyncReceived:
    """Return the message in a frame that an asyncio connection received."""
    message = AsyncReceived.__new__(AsyncReceived)
    message._frame = frame
    message._message = None
    message._is_answered = False
    message._publisher = publisher
    return message


def blocking_received(frame: bytes, publisher: Publisher) -> BlockingReceived:
    """Return the message in a frame that a blocking connection received."""
    message = BlockingReceived.__new__(BlockingReceived)
    message._frame = frame
    message._message = None
    message._is_answered = False
    message._publisher = publisher
    return message


def frame_of(message: Received) -> bytes:
    """Return the frame of a received message."""
    return message._frame
