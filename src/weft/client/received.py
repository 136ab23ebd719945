"""A message as it was received: its fields, and where it came from, where to and when.

A `Message` never knows its connection, because it may be published on any. This is the pair of a
message and the connection it came by. Every reading method is the message's own, by name.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from weft.core.messages import Field, Message
from weft.errors import UsageError, WrongType


class Received:
    """A received message; `message` is what can be kept, compared and published again."""

    __slots__ = ("message",)

    def __init__(self, frame: bytes) -> None:
        self.message = Message.from_frame(frame)

    @property
    def subject(self) -> str:
        """What it was sent to."""
        return self.message.subject

    @property
    def reply(self) -> str:
        """Where an answer is awaited; empty if none is."""
        return self.message.reply

    @property
    def origin(self) -> int:
        """The number of the gateway it entered at."""
        return self.message.origin

    @property
    def publisher(self) -> int:
        """The number of the connection that published it, at its origin."""
        return self.message.publisher

    @property
    def sequence(self) -> int:
        """Its number among the messages of its origin and service."""
        return self.message.sequence

    @property
    def time(self) -> int:
        """When it entered, in ns since the epoch."""
        return self.message.time

    @property
    def payload(self) -> bytes:
        """The bytes of a message that was published as bytes; WrongType if it was not."""
        return self.message.payload

    @property
    def text(self) -> str:
        """The text of a message that was published as a str; WrongType if it was not."""
        if len(self.message) != 1 or "" not in self.message:
            raise WrongType("this message is not bare text: it has fields of its own")
        return self.message.get_string("")

    def __getitem__(self, name: str) -> Any:
        return self.message[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The value of the first field of this name, or the default if there is none."""
        return self.message.get(name, default)

    def get_string(self, name: str) -> str:
        """The value of a string field; WrongType if it is another type."""
        return self.message.get_string(name)

    def get_int32(self, name: str) -> int:
        """The value of an int32 field; WrongType if it is another type."""
        return self.message.get_int32(name)

    def get_uint32(self, name: str) -> int:
        """The value of a uint32 field; WrongType if it is another type."""
        return self.message.get_uint32(name)

    def get_int64(self, name: str) -> int:
        """The value of an int64 field; WrongType if it is another type."""
        return self.message.get_int64(name)

    def get_uint64(self, name: str) -> int:
        """The value of a uint64 field; WrongType if it is another type."""
        return self.message.get_uint64(name)

    def get_double(self, name: str) -> float:
        """The value of a double field; WrongType if it is another type."""
        return self.message.get_double(name)

    def get_bool(self, name: str) -> bool:
        """The value of a bool field; WrongType if it is another type."""
        return self.message.get_bool(name)

    def get_blob(self, name: str) -> bytes:
        """The value of a blob field; WrongType if it is another type."""
        return self.message.get_blob(name)

    def get_message(self, name: str) -> Message:
        """The message in a message field; WrongType if it is another type."""
        return self.message.get_message(name)

    def get_list(self, name: str) -> list[Any]:
        """The values of a list field; WrongType if it is another type."""
        return self.message.get_list(name)

    def get_timestamp(self, name: str) -> datetime:
        """The moment in a timestamp field; WrongType if it is another type."""
        return self.message.get_timestamp(name)

    def get_timestamp_ns(self, name: str) -> int:
        """The ns since the epoch in a timestamp field, which a datetime would round down to µs."""
        return self.message.get_timestamp_ns(name)

    def fields(self, name: str | None = None) -> list[Field]:
        """All fields in order, or all of one name."""
        return self.message.fields(name)

    def to_dict(self) -> dict[str, Any]:
        """A dict of the values; of a name that occurs twice, the first."""
        return self.message.to_dict()

    def to_json(self) -> str:
        """A JSON object of the values; of a name that occurs twice, the first."""
        return self.message.to_json()

    def __iter__(self) -> Iterator[Field]:
        return iter(self.message)

    def __len__(self) -> int:
        return len(self.message)

    def __bool__(self) -> bool:
        # A message without fields is still a message.
        return True

    def __contains__(self, name: object) -> bool:
        return name in self.message

    def __repr__(self) -> str:
        return repr(self.message)

    def _awaited_at(self) -> str:
        """Where to send the answer; UsageError if nobody awaits one."""
        reply = self.message.reply
        if not reply:
            raise UsageError(f"nobody awaits an answer to this message to {self.subject!r}")
        return reply
