"""Codec of Bayeux, the protocol of CometD and Faye.

A text holds one message or an array of them, each an object with a `channel`. A message becomes a
frame; its answer is a message on the same channel with the same `id`. docs/doors.md lists the
supported parts.
"""

import json
import re
from collections import deque
from typing import Any, Generic, NamedTuple, TypeVar

from weft.broker.service import BODY_MAX_BYTES
from weft.errors import (
    BadField,
    BadOption,
    BadSubject,
    ConnectionLost,
    NotOpen,
    Refused,
    Reserved,
    WeftError,
    error_from_wire,
    shortened,
)
from weft.transports.bayeux.channels import (
    GAP,
    SUBSCRIBE,
    UNSUBSCRIBE,
    channel_of,
    is_told,
    pattern_of,
    published_to,
)
from weft.transports.bayeux.extensions import (
    BINARY,
    binary_from_fields,
    fields_from_binary,
    is_binary,
)
from weft.transports.json.paths import path_of
from weft.wire.frames import Flag, Frame, Kind, encode
from weft.wire.message.codec import encode_fields
from weft.wire.message.json_codec import data_from_fields, fields_from_data, json_value
from weft.wire.message.message import Message

VERSION = "1.0"
LONG_POLLING = "long-polling"
CALLBACK_POLLING = "callback-polling"
# Faye's name for long-polling by a page of another origin.
CROSS_ORIGIN_LONG_POLLING = "cross-origin-long-polling"
WEBSOCKET = "websocket"

# Messages in one text, channels in one subscription, characters of an id.
MESSAGES_MAX = 1024
CHANNELS_MAX = 256
ID_MAX = 128

UNKNOWN_CLIENT = 402

# Characters outside this set are removed from errors, so that every client can parse them.
_UNWRITTEN = re.compile(r"[^A-Za-z0-9\-_!~()$@ /*.]+")
_ERROR_MAX = 200

Said = dict[str, Any]
Slot = TypeVar("Slot")


class HandshakeCredentials(NamedTuple):
    """Credentials and extensions of a handshake."""

    key: str
    ticket: str
    wants_acks: bool
    reads_binary: bool


class Wait(NamedTuple):
    """Options of a connect: its timeout, and the last received batch."""

    timeout_ms: int | None
    acked: int | None


class BayeuxAnswerKey(NamedTuple):
    """Key of a pending answer: whether it is for a message, and the subject of its frame."""

    is_message: bool
    subject: bytes


class PendingAnswers(Generic[Slot]):
    """Pending answers of one client; a slot is whatever the caller wants back with the answer."""

    def __init__(self, body_limit: int = BODY_MAX_BYTES) -> None:
        self._body_limit = body_limit
        self._awaited: dict[BayeuxAnswerKey, deque[Slot]] = {}

    def __len__(self) -> int:
        return sum(len(waiting) for waiting in self._awaited.values())

    def frame(self, message: Said, slot: Slot) -> bytes:
        """Return the frame of a message, which asks for an answer.

        Raises:
            UsageError: invalid message, or too large.
            Refused: the channel is not for clients.
        """
        channel = message["channel"]
        if channel in (SUBSCRIBE, UNSUBSCRIBE):
            kind = Kind.SUBSCRIBE if channel == SUBSCRIBE else Kind.UNSUBSCRIBE
            subject, body = _subscription(kind, message.get("subscription"))
        else:
            kind, subject = Kind.MESSAGE, published_to(channel)
            data = message.get("data", {})
            is_bytes = is_binary(message)
            body = encode_fields(fields_from_binary(data) if is_bytes else fields_from_data(data))
        if len(body) > self._body_limit:
            # As a frame it would end the session.
            size, limit = len(body), self._body_limit
            raise BadField(f"a message of {size} bytes is over the limit of {limit}")
        question = BayeuxAnswerKey(kind == Kind.MESSAGE, subject)
        self._awaited.setdefault(question, deque()).append(slot)
        return encode(kind, subject, body, flags=Flag.ANSWER)

    def answered(self, frame: Frame) -> tuple[Slot, WeftError | None] | None:
        """Return the slot and the error of an OK or ERROR; None if no answer is pending for it."""
        error = None
        is_message = frame.sequence > 0
        if frame.kind == Kind.ERROR:
            facts = Message.from_body(frame.body).to_dict()
            error = error_from_wire(facts["number"], facts["text"])
            is_message = facts["kind"] == Kind.MESSAGE
        question = BayeuxAnswerKey(is_message, frame.subject)
        waiting = self._awaited.get(question)
        if not frame.flags & Flag.ANSWER or not waiting:
            return None
        slot = waiting.popleft()
        if not waiting:
            del self._awaited[question]
        return slot, error

    def take_all(self) -> list[Slot]:
        """Remove and return all slots; they get no answers."""
        slots = [slot for waiting in self._awaited.values() for slot in waiting]
        self._awaited.clear()
        return slots


def messages_in(text: str | bytes) -> list[Said]:
    """Return the messages of a text.

    Raises:
        BadField: not JSON.
        BadOption: JSON of another type, none or over MESSAGES_MAX messages.
    """
    value = json_value(text)
    messages = value if isinstance(value, list) else [value]
    if not 0 < len(messages) <= MESSAGES_MAX:
        raise BadOption(f"{len(messages)} messages, not 1 … {MESSAGES_MAX}")
    for each in messages:
        if not isinstance(each, dict) or not isinstance(each.get("channel"), str):
            raise BadOption("a message is a JSON object with a channel")
    return messages


def greeting_of(message: Said, types: tuple[str, ...]) -> HandshakeCredentials:
    """Return the credentials and extensions of a handshake.

    Raises:
        BadOption: no common version or connection type, or an invalid key or ticket.
    """
    version = message.get("version", VERSION)
    if not isinstance(version, str) or version.partition(".")[0] != VERSION.partition(".")[0]:
        raise BadOption(f"unsupported version: this gateway supports {VERSION}")
    offered = message.get("supportedConnectionTypes", list(types))
    if not isinstance(offered, list) or not any(each in types for each in offered):
        raise BadOption(f"no common connection type: this gateway has {' '.join(types)}")
    extra = _object(message, "ext")
    shown = _object(extra, "authentication")
    wants_acks = extra.get("ack") is True
    return HandshakeCredentials(
        _text(shown, "key"), _text(shown, "ticket"), wants_acks, is_binary(message)
    )


def wait_of(message: Said) -> Wait:
    """Return the options of a connect."""
    asked = _object(message, "advice").get("timeout")
    acked = _object(message, "ext").get("ack")
    return Wait(asked if _is_count(asked) else None, acked if _is_count(acked) else None)


def advice(reconnect: str, interval_s: float = 0.0, **seconds: float) -> Said:
    """Return an `advice`: the client's next step, with times in milliseconds."""
    times = {name: int(value * 1000) for name, value in seconds.items()}
    return {"reconnect": reconnect, "interval": int(interval_s * 1000), **times}


def succeeded(message: Said, **facts: object) -> Said:
    """Return the answer to a message that succeeded."""
    return _answer(message, is_successful=True) | facts


def failed(message: Said, error: WeftError, **facts: object) -> Said:
    """Return the answer to a message that failed."""
    answer = _answer(message, is_successful=False)
    answer["error"] = f"{_code(error)}:{_arguments(message)}:{_written(str(error))}"
    told = {"number": error.number, "name": type(error).__name__, "text": str(error)}
    return answer | {"ext": {"error": told}} | facts


def unknown_client() -> NotOpen:
    """Return the error for a message of an unknown or expired client."""
    return NotOpen("unknown or expired client: send a handshake first")


def told_message(data: bytes, frame: Frame, *, reads_binary: bool = False) -> Said:
    """Return a message for clients that support the extension `binary`, or for the others.

    Raises:
        Reserved: a client would take it for a message of the protocol.
        ProtocolError: invalid body; the gateway routes without decoding it.
    """
    if not is_told(frame.subject):
        raise Reserved(
            f"subject {shortened(frame.subject.decode())} is not delivered to Bayeux clients"
        )
    fields = Message.from_frame(data).raw_form()
    binary = binary_from_fields(fields) if reads_binary else None
    said: Said = {
        "channel": channel_of(frame.subject),
        "data": data_from_fields(fields) if binary is None else binary,
        "id": f"{frame.origin}.{frame.sequence}",
    }
    reply = {"reply": path_of(frame.reply)} if frame.reply else {}
    ext: Said = reply | ({} if binary is None else {BINARY: {}})
    return said | ({"ext": ext} if ext else {})


def told_gap(frame: Frame) -> Said:
    """Return the report of lost messages."""
    return {"channel": GAP, "data": Message.from_body(frame.body).to_dict()}


def text_of(said: Said) -> bytes:
    """Return a message as one line of JSON."""
    text = json.dumps(said, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode(errors="replace")


def _answer(message: Said, *, is_successful: bool) -> Said:
    answer: Said = {"channel": message["channel"], "successful": is_successful}
    if _is_id(message.get("id")):
        answer["id"] = message["id"]
    channels = _channels(message.get("subscription"))
    if len(channels) <= CHANNELS_MAX and all(isinstance(each, str) for each in channels):
        answer["subscription"] = message["subscription"]
    return answer


def _subscription(kind: Kind, wanted: object) -> tuple[bytes, bytes]:
    """Return the first pattern, and the body with the others and the options."""
    channels = _channels(wanted)
    if not 0 < len(channels) <= CHANNELS_MAX:
        raise BadSubject(f"{len(channels)} channels, not 1 … {CHANNELS_MAX}")
    first, *more = [pattern_of(channel) for channel in channels]
    options: dict[str, Any] = {}
    if kind == Kind.SUBSCRIBE:
        # A slow consumer loses the oldest; and Bayeux clients cannot answer requests.
        options |= {"policy": "drop_old", "listen_only": True}
    if more:
        options["patterns"] = [pattern.decode() for pattern in more]
    return first, Message.from_dict(options).encode() if options else b""


def _channels(wanted: object) -> list[object]:
    return wanted if isinstance(wanted, list) else [wanted]


def _code(error: WeftError) -> int:
    if isinstance(error, NotOpen):
        return UNKNOWN_CLIENT
    if isinstance(error, Refused):
        return 403
    if isinstance(error, BadSubject):
        return 405
    return 503 if isinstance(error, ConnectionLost) else 400


def _arguments(message: Said) -> str:
    about = message.get("subscription", message["channel"])
    named = [each for each in _channels(about)[:4] if isinstance(each, str)]
    return ",".join(_written(each) for each in named)


def _written(text: str) -> str:
    """Return a text without the characters that a Bayeux error must not contain."""
    return " ".join(_UNWRITTEN.sub(" ", text[:_ERROR_MAX]).split())


def _object(message: Said, key: str) -> Said:
    value = message.get(key)
    return value if isinstance(value, dict) else {}


def _text(message: Said, key: str) -> str:
    value = message.get(key, "")
    if not isinstance(value, str) or not value.isascii():
        raise BadOption(f"{key} is a string")
    return value


def _is_id(value: object) -> bool:
    """Return whether this is a valid id, which the answer can repeat exactly."""
    if isinstance(value, str):
        return len(value) <= ID_MAX and value.isprintable()
    return _is_count(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 53
