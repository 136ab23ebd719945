"""Message given to a command: a text, fields, or one message per line of standard input."""

import functools
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import click

from weft import Message
from weft.cli.options.field import field_from_text
from weft.errors import BadField, BadMessage

# Bounds the memory for an endless line; a gateway's own limit is usually lower.
LINE_MAX_BYTES = 64 << 20

Body = Message | bytes | str


@dataclass(frozen=True, slots=True)
class Content:
    """Message on the command line, as typed."""

    text: str | None
    field_texts: tuple[str, ...]
    message_json: str | None

    @property
    def is_given(self) -> bool:
        """Return whether the command line has a message."""
        return self.text is not None or self.has_fields

    def message(self) -> Body:
        """Return the typed message; an empty text if there is none.

        Raises:
            BadField: Invalid field or JSON, or a text beside them.
        """
        if not self.has_fields:
            return text_or_bytes(os.fsencode(self.text or ""))
        if self.text is not None:
            raise BadField("a message is either a text or fields, not both")
        base = Message() if self.message_json is None else Message.from_json(self.message_json)
        return Message(*base.fields(), *(field_from_text(text) for text in self.field_texts))

    @property
    def has_fields(self) -> bool:
        """Return whether the message is made of fields."""
        return bool(self.field_texts) or self.message_json is not None


def content_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add TEXT, --field and --message-json to a command, which gets them as one `content`."""

    @functools.wraps(command)
    def with_content(**options: Any) -> Any:
        content = Content(**{name: options.pop(name) for name in Content.__dataclass_fields__})
        return command(content=content, **options)

    for option in reversed(_OPTIONS):
        option(with_content)
    return with_content


def text_or_bytes(raw: bytes) -> str | bytes:
    """Return UTF-8 as a string, and other bytes as they are."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def messages_in_lines(stream: BinaryIO, is_json: bool) -> Iterator[Body]:
    """Yield a message per line: its text without the line end, or the fields of a JSON object.

    Raises:
        BadMessage: A line is too long or not a JSON object; the text has its number.
    """
    number = 0
    while line := stream.readline(LINE_MAX_BYTES + 1):
        number += 1
        if len(line) > LINE_MAX_BYTES:
            raise BadMessage(f"line {number} is over the limit of {LINE_MAX_BYTES} bytes")
        content = line[:-2] if line.endswith(b"\r\n") else line.removesuffix(b"\n")
        if not is_json:
            yield text_or_bytes(content)
            continue
        try:
            message = Message.from_json(content)
        except BadField as error:
            raise BadMessage(f"line {number}{_fault(error)}") from error
        yield message


def standard_input() -> BinaryIO:
    """Return standard input as a binary stream."""
    return sys.stdin.buffer


def _fault(error: BadField) -> str:
    """Return the position and error of a line; the JSON parser counts each line as the first."""
    cause = error.__cause__
    if isinstance(cause, json.JSONDecodeError):
        return f", column {cause.colno}: not JSON: {cause.msg}"
    return f": {error}"


_OPTIONS = (
    click.argument("text", required=False),
    click.option(
        "--field",
        "field_texts",
        metavar="NAME:TYPE=VALUE",
        multiple=True,
        help="A field of the message; a string if no type is given. Types: string, int32, uint32,"
        " int64, uint64, double, bool, blob, timestamp, null, message, list. May be repeated.",
    ),
    click.option(
        "--message-json",
        metavar="JSON",
        help="A whole message as a JSON object; --field adds to it.",
    ),
)
