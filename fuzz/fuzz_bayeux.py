"""Fuzzes the Bayeux dialect: a text becomes frames or refusals, and every answer is JSON.

No text makes anything but an error of ours come out, and every error can be taken apart by a client
that takes the grammar of Bayeux at its word.
"""

import json
import re
from collections.abc import Iterator

from fuzz.targets import Broken, Target, said
from weft.errors import UsageError, WeftError
from weft.transports.bayeux.extensions import time_sync_of
from weft.transports.bayeux.protocol import (
    PendingAnswers,
    Said,
    failed,
    greeting_of,
    messages_in,
    succeeded,
    text_of,
    told_message,
    wait_of,
)
from weft.wire.frames import Kind, encode, parse
from weft.wire.message.message import Message

_BODY_LIMIT = 4096
_NOW = 1_700_000_000_000
_TYPES = ("websocket", "long-polling")
_WRITTEN = r"[A-Za-z0-9\-_!~()$@ /*.]*"
_ERROR = re.compile(rf"\d{{3}}:{_WRITTEN}(,{_WRITTEN})*:{_WRITTEN}")


def outcome(data: bytes) -> str:
    """Say an input, and hear it: it is also a body that anybody may have sent."""
    frame = encode(Kind.MESSAGE, b"a", data)
    heard = f"{_told(frame)}\n{_told(frame, reads_binary=True)}"
    try:
        messages = messages_in(data)
    except UsageError as error:
        return f"{heard}\n{said(error)}"
    conversation = PendingAnswers[int](_BODY_LIMIT)
    answers = [_answered(conversation, message) for message in messages]
    return "\n".join([heard, *answers])


def _answered(conversation: PendingAnswers[int], message: Said) -> str:
    try:
        wait_of(message)
        if message["channel"] == "/meta/handshake":
            greeting_of(message, _TYPES)
        else:
            frame = conversation.frame(message, 1)
            if parse(frame).kind == Kind.MESSAGE:
                _told(frame)
                _told(frame, reads_binary=True)
        answer = succeeded(message)
        sync = time_sync_of(message, _NOW)
        if sync is not None:
            answer["ext"] = {"timesync": sync.answer(_NOW + 1)}
    except WeftError as error:
        answer = failed(message, error)
        if not _ERROR.fullmatch(answer["error"]):
            raise Broken(f"{answer['error']!r} cannot be taken apart") from error
    text = text_of(answer)
    json.loads(text)
    return text.decode()


def _told(frame: bytes, *, reads_binary: bool = False) -> str:
    try:
        text = text_of(told_message(frame, parse(frame), reads_binary=reads_binary))
    except WeftError as error:
        return said(error)
    if json.loads(text)["channel"].startswith("/meta/"):
        raise Broken(f"{text!r} passes for the protocol")
    return text.decode()


def _seeds() -> Iterator[bytes]:
    messages: list[Said] = [
        {"channel": "/meta/handshake", "version": "1.0", "supportedConnectionTypes": ["websocket"]},
        {"channel": "/meta/handshake", "ext": {"ack": True, "authentication": {"key": "k"}}},
        {"channel": "/meta/connect", "advice": {"timeout": 0}, "ext": {"ack": 3}, "id": "1"},
        {"channel": "/meta/subscribe", "subscription": ["/a/*", "/b/**"], "id": 7},
        {"channel": "/meta/unsubscribe", "subscription": "/a"},
        {"channel": "/meta/disconnect"},
        {"channel": "/a/b", "data": {"x": [1, 2.5, None, {"$blob": "aGVsbG8="}]}},
        {"channel": "/meta", "data": 1},
        {"channel": "/a.b", "data": "\u2028"},
        {"channel": "/a", "data": {"data": "HelloWorld", "last": True}, "ext": {"binary": {}}},
        {
            "channel": "/a",
            "data": {"data": "00", "last": False, "meta": {"a": 1}},
            "ext": {"binary": True, "timesync": {"tc": 1, "l": 2, "o": 3}},
        },
        {"channel": "/meta/connect", "ext": {"timesync": {"tc": 1.5, "l": -2, "o": 1e9}}},
        {"channel": "/a/>", "data": True},
    ]
    for message in messages:
        yield json.dumps([message]).encode()
    yield json.dumps(messages).encode()
    yield b'{"channel": "\\ud800", "data": "\\ud800"}'
    yield b"[" * 2000
    yield Message(a=1, b=[b"\xff", 2.5]).encode()
    yield Message(data=b"\xff", last=False, meta=Message(a=1)).encode()


_WORDS = (
    *(b'"channel":', b'"/meta/', b'"subscription":', b'"data":', b'"ext":', b'"id":', b'"ack":'),
    *(b'"binary":', b'"timesync":', b'"last":', b'"meta":'),
    *(b"/**", b"/*", b"/>", b"/_WEFT", b"meta.", b"[]", b"{}", b"null", b"1e999", b"\\ud800", b"["),
)

TARGET = Target(outcome, _seeds, _WORDS)
