"""Converts between the middleman messages of one peer and frames.

A target is a subject, and a body is the one unnamed string of a message, so other clients see both
as usual. Errors are sent as a message of the same form: `ERR TARGET`, with the headers `Error`,
`Number` and, for a request, `ReqID`.
"""

import json
from collections.abc import Callable

from weft.errors import (
    BadField,
    BadOption,
    Draining,
    ProtocolError,
    SlowReader,
    WeftError,
    shortened,
)
from weft.transports.middleman.protocol import NO_TARGET, MiddlemanMessage, read, written
from weft.transports.middleman.request_ids import Given, PendingRequest, RequestIds
from weft.wire.frames import HEADER_BYTES, Flag, Frame, Kind, encode, parse
from weft.wire.message.codec import encode_fields
from weft.wire.message.json_codec import data_from_fields
from weft.wire.message.message import Message
from weft.wire.message.types import Fields, FieldType
from weft.wire.request_failure import failure_in, failure_message

WELCOME = "MM OK"

_ENABLE = b"_WEFT.ask.enable"
_ENABLED_BY = {"EPUB": "publish", "ESUB": "subscribe", "EREQ": "request"}
_COMMANDS = ("PUB", "SUB", "REQ", "RES", *_ENABLED_BY)
_INBOX = b"_INBOX."
_MESSAGE = int(Kind.MESSAGE)
_REQUEST = int(Flag.REQUEST)
_FAILED = int(Flag.FAILED)
_FROM_GATEWAY = int(Flag.FROM_GATEWAY)
_OF_GATEWAY = "_WEFT."


class MiddlemanTalk:
    """Converter of one authenticated peer."""

    def __init__(self, inbox: bytes, body_limit: int, token: Callable[[], str]) -> None:
        """`inbox` is the prefix of its reply subjects; `token` returns unguessable names."""
        self._body_limit = body_limit
        self._ids = RequestIds(inbox, token)

    def frame(self, text: str, now_ns: int, requests_max: int) -> bytes:
        """Return the frame of a message.

        Raises:
            UsageError: invalid message, or too large a body.
            Refused: it answers no pending request, or too many requests are pending.
        """
        said = read(text)
        if said.command not in _COMMANDS:
            known = ", ".join(_COMMANDS)
            raise BadOption(f"the command {shortened(said.command)} is none of {known}")
        subject = said.subject
        if said.command == "SUB":
            return encode(Kind.SUBSCRIBE, subject)
        if said.command in _ENABLED_BY:
            right = _ENABLED_BY[said.command]
            reply = self._ids.ask(PendingRequest(said.target, "", now_ns), requests_max)
            body = Message(right=right, pattern=said.target).encode()
            return encode(_MESSAGE, _ENABLE, body, reply, _REQUEST)
        body = self._body(said)
        if said.command == "PUB":
            return encode(_MESSAGE, subject, body)
        if said.command == "REQ":
            asked = PendingRequest(said.target, said.request_id, now_ns)
            return encode(_MESSAGE, subject, body, self._ids.ask(asked, requests_max), _REQUEST)
        reply = self._ids.answer(said.request_id)
        if said.headers.get("error"):
            failed = failure_message(said.body or said.headers["error"])
            return encode(_MESSAGE, reply, failed.encode(), flags=_FAILED)
        return encode(_MESSAGE, reply, body)

    def told(self, data: bytes, now_ns: int, requests_max: int) -> str:
        """Return the message of a frame; empty if the peer gets none."""
        frame = parse(data)
        if frame.kind == Kind.MESSAGE:
            return self._message(data, frame, now_ns, requests_max)
        if frame.kind == Kind.ERROR:
            return self._error(frame)
        if frame.kind == Kind.WELCOME:
            return WELCOME
        facts = Message.from_body(frame.body).to_dict() if frame.body else {}
        if frame.kind == Kind.GAP:
            text = f"{facts['count']} messages will not come: {facts['reason']}"
            return _error_text(SlowReader.number, SlowReader.__name__, text)
        if frame.kind == Kind.GOODBYE:
            return _error_text(Draining.number, Draining.__name__, facts["text"])
        return ""

    def expire(self, oldest_ns: int) -> list[PendingRequest]:
        """Remove requests older than a time; return those with a ReqID, which get no answer."""
        return [asked for asked in self._ids.expire(oldest_ns) if asked.request_id]

    def _body(self, said: MiddlemanMessage) -> bytes:
        fields = Fields(False)
        fields.add("", FieldType.STRING, said.body)
        body = encode_fields(fields)
        if len(body) > self._body_limit:
            raise BadField(f"a body of {len(body)} bytes is over the limit of {self._body_limit}")
        return body

    def _message(self, data: bytes, frame: Frame, now_ns: int, requests_max: int) -> str:
        if frame.subject.startswith(_INBOX):
            asked = self._ids.answered(frame.subject)
            if asked is None or not asked.request_id:
                return ""
            if asked.target.startswith(_OF_GATEWAY) and not frame.flags & _FROM_GATEWAY:
                return ""
            if frame.flags & _FAILED:
                failed = failure_in(data)
                name, why = type(failed).__name__, str(failed)
                return _error_text(failed.number, name, why, asked.target, asked.request_id)
            return written("RES", asked.target, body_text(data), ReqID=asked.request_id)
        target = frame.subject.decode()
        if frame.flags & _REQUEST:
            stand_in = self._ids.give(Given(frame.reply, now_ns), requests_max)
            return written("REQ", target, body_text(data), ReqID=stand_in)
        return written("PUB", target, body_text(data))

    def _error(self, frame: Frame) -> str:
        facts = Message.from_body(frame.body).to_dict()
        target = facts.get("target", NO_TARGET)
        request_id = facts.get("request_id", "")
        asked = self._ids.answered(frame.reply)
        if asked is not None:
            target, request_id = asked.target, asked.request_id
        elif frame.subject and not frame.subject.startswith(_INBOX):
            target = frame.subject.decode()
        return _error_text(facts["number"], facts["name"], facts["text"], target, request_id)


def error_frame(error: WeftError, target: str, request_id: str) -> bytes:
    """Return an error as a frame, so that it is sent in order with other frames."""
    body = Message(
        number=error.number,
        name=type(error).__name__,
        text=str(error),
        kind=0,
        target=target,
        request_id=request_id,
    )
    return encode(Kind.ERROR, body=body.encode())


def is_for_all(frame: bytes) -> bool:
    """Return whether a whole frame is encoded alike for every peer: a message, but no request."""
    subject = frame[HEADER_BYTES : HEADER_BYTES + len(_INBOX)]
    return frame[4] == _MESSAGE and not frame[5] & _REQUEST and subject != _INBOX


def body_text(data: bytes) -> str:
    """Return the body of the message in a frame: its one unnamed string, otherwise JSON."""
    try:
        fields = Message.from_frame(data).raw_form()
    except ProtocolError:
        # The gateway routes without decoding; a requester must get an answer even so.
        fields = Fields(False)
        fields.add("", FieldType.BLOB, parse(data).body)
    if len(fields.names) == 1 and not fields.names[0]:
        kind, value = fields.kinds[0], fields.values[0]
        if kind == FieldType.STRING:
            text: str = value
            return text
        if kind == FieldType.BLOB:
            try:
                return str(value, "utf-8")
            except UnicodeDecodeError:
                pass
    said = data_from_fields(fields)
    return json.dumps(said, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _error_text(
    number: int, name: str, text: str, target: str = NO_TARGET, request_id: str = ""
) -> str:
    headers = {"Error": name, "Number": str(number)}
    if request_id:
        headers["ReqID"] = request_id
    return written("ERR", target, text, **headers)
