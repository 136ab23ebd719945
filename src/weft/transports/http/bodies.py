"""Converts the body of an HTTP request to a message, and a message to the body of a response."""

import json

from weft.errors import BadField
from weft.wire.frames import Flag, parse
from weft.wire.message.codec import encode_fields
from weft.wire.message.json_codec import data_from_fields, fields_from_data, json_value
from weft.wire.message.message import Message

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
BYTES = "application/octet-stream"

# Content types that mean nothing: none given, and the default of curl.
_UNTELLING = {"", "application/x-www-form-urlencoded"}


def message_of(body: bytes, content_type: str) -> tuple[bytes, Flag]:
    """Return the body of a frame and its flags for the body of a request.

    JSON becomes its fields, text one unnamed string, anything else one unnamed blob. Without a
    meaningful type, the first of these that fits is used.

    Raises:
        BadField: the body does not match its type.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == JSON or kind.endswith("+json"):
        return encode_fields(fields_from_data(json_value(body))), Flag.NONE
    if kind.startswith("text/"):
        return _text(body), Flag.NONE
    if kind in _UNTELLING:
        for read in (_json, _text):
            try:
                return read(body), Flag.NONE
            except BadField:
                continue
    return body, Flag.BARE


def body_of(frame: bytes) -> tuple[bytes, str]:
    """Return the body of a response and its type for the message of a frame.

    Raises:
        BadMessage: the frame holds no valid message.
    """
    taken = parse(frame)
    if taken.flags & Flag.BARE:
        return taken.body, BYTES
    data = data_from_fields(Message.from_frame(frame).raw_form())
    if isinstance(data, str):
        return data.encode(), TEXT
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode(), JSON


def _json(body: bytes) -> bytes:
    return encode_fields(fields_from_data(json_value(body)))


def _text(body: bytes) -> bytes:
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise BadField("the text is not UTF-8") from error
    return encode_fields(fields_from_data(text))
