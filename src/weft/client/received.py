"""A message as it was received: its fields, and where it came from, where to and when.

A `Message` never knows its connection, because it may be published on any. This is the pair of a
message and the connection it came by. Every reading method is the message's own, by name. Nothing
is made of the frame until somebody asks.
"""

from collections.abc import Awaitable, Iterator
from datetime import datetime
from typing import Any, Protocol

from weft.core.messages import Field, Message, message_in
from weft.errors import UsageError, WrongType


class Publisher(Protocol):
    """The blocking connection that a received message is answered through."""

    def publish(self, subject: str, body: Any) -> None:
        """Publish a message."""


class AsyncPublisher(Protocol):
    """The asyncio connection that a received message is answered through."""

    def publish(self, subject: str, body: Any) -> Awaitable[None]:
        """Publish a message."""


class Received:
    """A received message; `message` is what can be kept, compared and published again."""

    _publisher: Any

    def __init__(self, frame: bytes) -> None:
        self._frame = frame
        self._message: Message | None = None

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
        """The value of an int32 field; WrongType if it is another type."""
        return self._read().get_int32(name)

    def get_uint32(self, name: str) -> int:
        """The value of a uint32 field; WrongType if it is another type."""
        return self._read().get_uint32(name)

    def get_int64(self, name: str) -> int:
        """The value of an int64 field; WrongType if it is another type."""
        return self._read().get_int64(name)

    def get_uint64(self, name: str) -> int:
        """The value of a uint64 field; WrongType if it is another type."""
        return self._read().get_uint64(name)

    def get_double(self, name: str) -> float:
        """The value of a double field; WrongType if it is another type."""
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

    def _read(self) -> Message:
        message = self._message
        if message is None:
            message = message_in(self._frame)
            self._message = message
        return message

    def _awaited_at(self) -> str:
        """Where to send the answer; UsageError if nobody awaits one."""
        reply = self._read().reply
        if not reply:
            raise UsageError(f"nobody awaits an answer to this message to {self.subject!r}")
        return reply


class AsyncReceived(Received):
    """A message received by an asyncio connection."""

    async def respond(self, body: Any) -> None:
        """Answer this message with anything that can be published.

        Raises:
            UsageError: nobody awaits an answer to it.
        """
        await self._publisher.publish(self._awaited_at(), body)


class BlockingReceived(Received):
    """A message received by a blocking connection."""

    def respond(self, body: Any) -> None:
        """Answer this message with anything that can be published.

        Raises:
            UsageError: nobody awaits an answer to it.
        """
        self._publisher.publish(self._awaited_at(), body)


def async_received(frame: bytes, publisher: AsyncPublisher) -> AsyncReceived:
    """The message in a frame that an asyncio connection received."""
    message = AsyncReceived.__new__(AsyncReceived)
    message._frame = frame
    message._message = None
    message._publisher = publisher
    return message


def blocking_received(frame: bytes, publisher: Publisher) -> BlockingReceived:
    """The message in a frame that a blocking connection received."""
    message = BlockingReceived.__new__(BlockingReceived)
    message._frame = frame
    message._message = None
    message._publisher = publisher
    return message
