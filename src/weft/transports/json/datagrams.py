"""JSON datagrams: the protocol of browsers and scripts.

Clients publish with `{"path": "/a/b", "data": …}`, subscribe with `{"interest": "/a", "subpaths":
true}` and unsubscribe with `{"forget": "/a", "subpaths": true}`. They receive `{"id": "7.42",
"path": "/a/b", "data": …}`, and an answer to each datagram with an `"ack"`. docs/doors.md has them
all.
"""

import difflib
import json
from collections import deque
from typing import Any, NamedTuple

from weft.broker.service import BODY_MAX_BYTES
from weft.errors import BadField, BadOption, ProtocolError, WeftError, shortened
from weft.transports.json.paths import path_of, patterns_of, subject_of
from weft.wire.frames import Flag, Frame, Kind, encode, parse
from weft.wire.message.codec import encode_fields
from weft.wire.message.json_codec import data_from_fields, fields_from_data, json_value
from weft.wire.message.message import Message
from weft.wire.request_failure import failure_in, failure_message
from weft.wire.since import Since, since_from
from weft.wire.subjects import checked_subject

# Datagrams in one text, and characters of an `ack`.
OBJECTS_MAX = 1024
ACK_MAX = 128
# Longer unknown keys get no "did you mean".
KEY_MAX = 64

_KEYS = {
    "path": ("path", "data", "error", "reply", "request", "not_back", "masked", "ack"),
    "interest": ("interest", "subpaths", "group", "policy", "listen_only", "since", "ack"),
    "forget": ("forget", "subpaths", "group", "ack"),
    "ping": ("ping",),
    "goodbye": ("goodbye",),
}

Datagram = dict[str, Any]

# Built once: json.dumps() would build another for each datagram.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
# Plain integers: enum members cost several times as much to combine.
_NO_FLAGS = 0
_ANSWER = int(Flag.ANSWER)
_REQUEST = int(Flag.REQUEST)
_NOT_BACK = int(Flag.NOT_BACK)
_FAILED = int(Flag.FAILED)
_FROM_GATEWAY = int(Flag.FROM_GATEWAY)


class DatagramAnswerKey(NamedTuple):
    """Key of a pending answer: whether it is for a message, and the subjects of its frame."""

    is_message: bool
    subject: bytes
    reply: bytes


class Datagrams:
    """Converter of one peer; remembers which of its datagrams await an answer."""

    def __init__(self, body_limit: int = BODY_MAX_BYTES) -> None:
        self._body_limit = body_limit
        self._awaited: dict[DatagramAnswerKey, deque[object]] = {}

    def frame(self, datagram: Datagram) -> bytes:
        """Return the frame of a datagram.

        Raises:
            UsageError: invalid datagram, or too large a message.
        """
        kinds = [kind for kind in _KEYS if kind in datagram]
        if len(kinds) != 1:
            raise BadOption(f"a datagram has one of {', '.join(_KEYS)}, not {len(kinds)} of them")
        _refuse_unknown(datagram, _KEYS[kinds[0]])
        frame = _MADE[kinds[0]](datagram)
        if len(frame.body) > self._body_limit:
            # As a frame it would end the connection.
            size, limit = len(frame.body), self._body_limit
            raise BadField(f"a message of {size} bytes is over the limit of {limit}")
        flags = frame.flags
        if "ack" in datagram:
            flags |= _ANSWER
            known_by = _known_by(datagram["ack"])
            question = DatagramAnswerKey(frame.kind == Kind.MESSAGE, frame.subject, frame.reply)
            self._awaited.setdefault(question, deque()).append(known_by)
        return encode(frame.kind, frame.subject, frame.body, frame.reply, flags)

    def told(self, data: bytes) -> Datagram:
        """Return the datagram of a frame."""
        frame = parse(data)
        if frame.kind == Kind.MESSAGE:
            return message_datagram(data, frame)
        if frame.kind == Kind.OK:
            question = DatagramAnswerKey(frame.sequence > 0, frame.subject, frame.reply)
            told: Datagram = {"ok": self._answered(question)}
            if frame.sequence:
                told["id"] = identity(frame)
            return told
        if frame.kind == Kind.ERROR:
            return self._error(frame)
        if frame.kind == Kind.PONG:
            return {"pong": frame.body.decode(errors="replace")}
        if frame.kind == Kind.WELCOME:
            return {"welcome": _welcome(frame)}
        return {Kind(frame.kind).name.lower(): _facts(frame)}

    def _error(self, frame: Frame) -> Datagram:
        facts = _facts(frame)
        kind = facts.pop("kind")
        told: Datagram = {"error": facts}
        if frame.subject:
            told["path"] = path_of(frame.subject)
        if frame.reply and kind == Kind.MESSAGE:
            told["reply"] = path_of(frame.reply)
        elif frame.reply:
            told["group"] = frame.reply.decode()
        if frame.flags & _ANSWER:
            question = DatagramAnswerKey(kind == Kind.MESSAGE, frame.subject, frame.reply)
            told["ack"] = self._answered(question)
        return told

    def _answered(self, question: DatagramAnswerKey) -> object:
        """Return the `ack` of the oldest pending datagram with this key."""
        waiting = self._awaited.get(question)
        if not waiting:
            return None
        known_by = waiting.popleft()
        if not waiting:
            del self._awaited[question]
        return known_by


def datagrams_in(text: str | bytes) -> list[Datagram]:
    """Return the datagrams of a text: one object, or an array of them.

    Raises:
        BadField: not JSON.
        BadOption: JSON of another type, or over OBJECTS_MAX datagrams.
    """
    value = json_value(text)
    objects = value if isinstance(value, list) else [value]
    if len(objects) > OBJECTS_MAX:
        raise BadOption(f"{len(objects)} datagrams at once are over the limit of {OBJECTS_MAX}")
    for each in objects:
        if not isinstance(each, dict):
            raise BadOption("a datagram is a JSON object")
    return objects


def since_of(datagram: Datagram) -> Since | None:
    """Return where the history of an interest begins; None without history.

    Raises:
        BadOption: neither a valid text nor a position.
    """
    since = datagram.get("since") if "interest" in datagram else None
    if since is None or (isinstance(since, int) and not isinstance(since, bool)):
        return since
    if isinstance(since, str):
        return since_from(since)
    raise BadOption("since is a position, or a text such as '5m' or '2026-01-31T12:00:00Z'")


def error_datagram(error: WeftError, datagram: Datagram | None = None) -> Datagram:
    """Return the datagram for an error in a datagram that did not become a frame."""
    told: Datagram = {"error": error_facts(error)}
    if datagram is not None and _is_ack(datagram.get("ack")):
        told["ack"] = datagram["ack"]
    return told


def error_facts(error: WeftError) -> Datagram:
    """Return the fields of an error."""
    return {"number": error.number, "name": type(error).__name__, "text": str(error)}


def message_datagram(data: bytes, frame: Frame) -> Datagram:
    """Return the datagram of a message, the same for all receivers.

    The gateway routes without decoding bodies: an invalid one gives an error in place of the data.
    """
    told: Datagram = {"id": identity(frame), "path": path_of(frame.subject)}
    if frame.flags & _FAILED:
        told["error"] = error_facts(failure_in(data))
    else:
        try:
            told["data"] = data_from_fields(Message.from_frame(data).raw_form())
        except ProtocolError as error:
            told["error"] = error_facts(error)
    if frame.reply:
        told["reply"] = path_of(frame.reply)
    if frame.flags & _REQUEST:
        told["request"] = True
    if frame.flags & _FROM_GATEWAY:
        told["from_gateway"] = True
    return told


def identity(frame: Frame) -> str:
    """Return the id of a message, unique in the mesh."""
    return f"{frame.origin}.{frame.sequence}"


def text_of(datagram: Datagram) -> bytes:
    """Return a datagram as one line of JSON."""
    return _ENCODER.encode(datagram).encode()


def _message(datagram: Datagram) -> Frame:
    flags = _NO_FLAGS
    if _is_on(datagram, "request"):
        flags |= _REQUEST
    if _is_on(datagram, "not_back"):
        flags |= _NOT_BACK
    if _is_on(datagram, "masked"):
        if "reply" not in datagram:
            raise BadOption("masked is for a message with a reply: without one it hides nothing")
        flags |= Flag.MASKED
    reply = subject_of(datagram["reply"]) if "reply" in datagram else b""
    if "error" in datagram:
        if "data" in datagram:
            raise BadOption("a datagram has data or an error, not both")
        flags |= _FAILED
        body = failure_message(_text(datagram, "error")).encode()
    else:
        body = encode_fields(fields_from_data(datagram.get("data", {})))
    return Frame(Kind.MESSAGE, flags, subject_of(datagram["path"]), reply, body)


def _interest(datagram: Datagram) -> Frame:
    options: dict[str, Any] = {}
    if "policy" in datagram:
        options["policy"] = _text(datagram, "policy")
    if _is_on(datagram, "listen_only"):
        options["listen_only"] = True
    return _subscription(datagram, "interest", options)


def _end_of_interest(datagram: Datagram) -> Frame:
    return _subscription(datagram, "forget", {})


def _subscription(datagram: Datagram, key: str, options: dict[str, Any]) -> Frame:
    kind = Kind.SUBSCRIBE if key == "interest" else Kind.UNSUBSCRIBE
    patterns = patterns_of(datagram[key], with_subpaths=_is_on(datagram, "subpaths"))
    if len(patterns) > 1:
        options["patterns"] = [pattern.decode() for pattern in patterns[1:]]
    group = checked_subject(_text(datagram, "group")) if "group" in datagram else b""
    body = Message.from_dict(options).encode() if options else b""
    return Frame(kind, Flag.NONE, patterns[0], group, body)


def _ping(datagram: Datagram) -> Frame:
    return Frame(Kind.PING, Flag.NONE, b"", b"", _text(datagram, "ping").encode())


def _goodbye(datagram: Datagram) -> Frame:
    body = Message(reason=_text(datagram, "goodbye")).encode()
    return Frame(Kind.GOODBYE, Flag.NONE, b"", b"", body)


_MADE = {
    "path": _message,
    "interest": _interest,
    "forget": _end_of_interest,
    "ping": _ping,
    "goodbye": _goodbye,
}


def _welcome(frame: Frame) -> Datagram:
    facts = _facts(frame)
    inbox = path_of(facts["inbox"].encode())
    names = {"service": frame.subject.decode(), "name": frame.reply.decode()}
    return names | facts | {"inbox": inbox}


def _facts(frame: Frame) -> Datagram:
    return Message.from_body(frame.body).to_dict() if frame.body else {}


def _refuse_unknown(datagram: Datagram, known: tuple[str, ...]) -> None:
    for key in datagram:
        if key not in known:
            # The time to compare a key grows with its length.
            near = difflib.get_close_matches(key, known, n=1) if len(key) <= KEY_MAX else []
            hint = f"; did you mean {near[0]!r}?" if near else f": it has {', '.join(known)}"
            raise BadOption(f"a datagram with {known[0]!r} has no {shortened(key)}{hint}")


def _is_on(datagram: Datagram, key: str) -> bool:
    value = datagram.get(key, False)
    if not isinstance(value, bool):
        raise BadOption(f"{key} is true or false")
    return value


def _text(datagram: Datagram, key: str) -> str:
    value = datagram[key]
    if not isinstance(value, str):
        raise BadOption(f"{key} is a string")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise BadOption(f"{key} is not Unicode text: {error.reason}") from error
    return value


def _known_by(ack: object) -> object:
    if not _is_ack(ack):
        raise BadOption(f"ack is a string of at most {ACK_MAX} characters, or a whole number")
    return ack


def _is_ack(ack: object) -> bool:
    """Return whether this is a valid `ack`, which the answer can repeat exactly."""
    if isinstance(ack, str):
        return len(ack) <= ACK_MAX and ack.isprintable()
    return isinstance(ack, int) and not isinstance(ack, bool) and abs(ack) < 1 << 53
