"""Received message as a line of text, or as a JSON object.

Control characters in messages do not reach the terminal. An invalid body is marked as such, and
does not end the command.
"""

import json
from datetime import datetime
from typing import Any

from weft import FieldType, Message
from weft.errors import WeftError, WrongType
from weft.wire.message.field_types import timestamp_text
from weft.wire.message.types import Fields

# Limits of one value in characters, of fields or items on one level, and of a whole message.
VALUE_MAX = 256
FIELDS_MAX = 64
BODY_MAX = 4096


def message_line(message: Message) -> str:
    """Return time, subject and fields on one line."""
    return f"{clock(message.time)}  {printable(message.subject)}  {body_text(message)}"


def message_json(message: Message, subject: str | None = None) -> str:
    """Return header and fields as one JSON object on one line, complete."""
    header = {
        "subject": message.subject if subject is None else subject,
        "reply": message.reply,
        "origin": message.origin,
        "publisher": message.publisher,
        "sequence": message.sequence,
        "time": message.time,
    }
    try:
        body = f'"message":{message.to_json()}'
        text = bare_text(message)
    except WeftError as error:
        body = f'"error":{to_json(str(error))}'
        text = None
    if text is not None:
        body += f',"text":{to_json(text)}'
    return f"{to_json(header)[:-1]},{body}}}"


def body_text(message: Message) -> str:
    """Return the fields as `name=value`; bare bytes as text, or their beginning in hex."""
    try:
        text = bare_text(message)
        if text is not None:
            return _cut(printable(text))
        payload = bare_payload(message)
        if payload is not None:
            return _blob(payload)
        return _cut(_fields(message.raw_form()), BODY_MAX)
    except WeftError as error:
        return f"<cannot be read: {error}>"


def is_readable(message: Message) -> bool:
    """Return whether the body is a message, or bare bytes."""
    try:
        message.raw_form()
    except WeftError:
        return False
    return True


def bare_payload(message: Message) -> bytes | None:
    """Return the body of a message of bare bytes; None if it has fields."""
    try:
        return message.payload
    except WrongType:
        return None


def bare_text(message: Message) -> str | None:
    """Return the text of a message without fields: an unnamed string, or bare UTF-8."""
    payload = bare_payload(message)
    if payload is None:
        value = message.get("") if len(message) == 1 else None
        return value if isinstance(value, str) else None
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return None


def clock(time_ns: int) -> str:
    """Return the local time of day, to the microsecond."""
    return datetime.fromtimestamp(time_ns // 1000 / 1e6).strftime("%H:%M:%S.%f")


def printable(text: str) -> str:
    """Return a text with control characters, including line ends, as escapes."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def to_json(value: object) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _fields(fields: Fields) -> str:
    shown = [
        f"{printable(name)}={value}"
        for name, value in zip(fields.names, _values(fields), strict=False)
    ]
    if len(fields) > FIELDS_MAX:
        shown.append(f"… {len(fields) - FIELDS_MAX} more")
    return " ".join(shown)


def _values(fields: Fields) -> list[str]:
    first = zip(fields.kinds[:FIELDS_MAX], fields.values[:FIELDS_MAX], strict=True)
    return [_value(kind, raw) for kind, raw in first]


def _value(kind: int, raw: Any) -> str:
    # The raw form, because only it has the type of a list's item.
    if kind == FieldType.MESSAGE:
        return "{" + _fields(raw) + "}"
    if kind == FieldType.LIST:
        return _items(raw)
    if kind == FieldType.STRING:
        return _cut(printable(to_json(raw)))
    if kind == FieldType.BLOB:
        return _blob(raw)
    if kind == FieldType.TIMESTAMP:
        return timestamp_text(raw)
    return "null" if raw is None else str(raw).lower()


def _items(items: Fields) -> str:
    shown = _values(items)
    if len(items) > FIELDS_MAX:
        shown.append(f"… {len(items) - FIELDS_MAX} more")
    return f"[{', '.join(shown)}]"


def _blob(value: bytes) -> str:
    beginning = value[: VALUE_MAX // 8]
    more = "…" if len(beginning) < len(value) else ""
    return f"<{len(value)} bytes: {beginning.hex(' ', -4)}{more}>" if value else "<0 bytes>"


def _cut(text: str, limit: int = VALUE_MAX) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… of {len(text)} characters"
