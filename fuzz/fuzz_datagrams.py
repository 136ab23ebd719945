"""Fuzzes datagrams: a text becomes frames, what is told of them is JSON, and says the same again.

An input is a text, a zero byte, and the body of a message that anybody may have published. What
has a message's form comes back with the same data; blobs stay what they are.
"""

import json
from collections.abc import Iterator

from fuzz.targets import Broken, Target, said
from weft.errors import UsageError, WeftError
from weft.transports.json.datagrams import (
    Datagram,
    Datagrams,
    datagrams_in,
    error_datagram,
    since_of,
    text_of,
)
from weft.wire.frames import Flag, Kind, encode, parse
from weft.wire.message.message import Message

_BODY_LIMIT = 4096


def outcome(data: bytes) -> str:
    """Say an input, and hear it."""
    text, _, body = data.partition(b"\0")
    conversation = Datagrams(_BODY_LIMIT)
    heard = [_told(conversation, encode(Kind.MESSAGE, b"a", body, flags=Flag.REQUEST))]
    try:
        datagrams = datagrams_in(text)
    except UsageError as error:
        return f"{heard}\n{said(error)}"
    return "\n".join([*heard, *(_answered(conversation, each) for each in datagrams)])


def _answered(conversation: Datagrams, datagram: Datagram) -> str:
    try:
        since = since_of(datagram)
        frame = conversation.frame(datagram)
    except WeftError as error:
        return _text(error_datagram(error, datagram))
    if parse(frame).kind != Kind.MESSAGE:
        return f"{since} {parse(frame)}"
    told = _told(conversation, frame)
    again = json.loads(told)
    if "error" not in again:
        repeated = Datagrams(_BODY_LIMIT).frame({"path": again["path"], "data": again["data"]})
        if parse(repeated).body != parse(frame).body:
            raise Broken(f"{told!r} is another message when it is said again")
    return told


def _told(conversation: Datagrams, frame: bytes) -> str:
    return _text(conversation.told(frame))


def _text(datagram: Datagram) -> str:
    text = text_of(datagram)
    if b"\n" in text:
        raise Broken(f"{text!r} is more than a line")
    json.loads(text)
    return text.decode()


def _seeds() -> Iterator[bytes]:
    datagrams: list[Datagram] = [
        {"path": "/a/b", "data": {"x": [1, 2.5, None, True, "é"]}, "ack": 1},
        {"path": "/a", "data": {"$blob": "aGVsbG8="}},
        {"path": "/a", "data": {"frames": {"$blob": "A" * 44}, "next": 0, "left": 0}},
        {"path": "/a", "data": {"$$blob": "x", "$timestamp": "2026-01-31T12:00:00.5Z"}},
        {"path": "/a", "data": {"t": {"$timestamp": "2026-01-31T12:00:00.5Z"}}},
        {"path": "/a", "data": {"d": [{"$double": "NaN"}, {"$double": "-Infinity"}]}},
        {"path": "/a", "data": 18446744073709551615, "reply": "/b", "masked": True},
        {"interest": "/a", "subpaths": True, "since": "5m", "policy": "latest"},
        {"interest": "/a", "since": 3, "group": "g", "listen_only": True, "ack": "x"},
        {"forget": "/a", "subpaths": True, "ack": 2},
        {"ping": "so far"},
        {"goodbye": "done"},
        {"path": "/a", "paths": 1},
    ]
    for datagram in datagrams:
        yield json.dumps(datagram).encode()
    yield json.dumps(datagrams).encode() + b"\0" + Message(a=1, b=[b"\xff", 2.5]).encode()
    yield b'{"path":"/a","data":{"a":1,"a":2}}'
    yield b'{"path":"/\\ud800","data":"\\ud800"}'
    yield b"[" * 2000


_WORDS = (
    *(b'"path":', b'"data":', b'"interest":', b'"forget":', b'"since":', b'"ack":', b'"reply":'),
    *(b'{"$blob":"', b'{"$timestamp":"', b'{"$double":"', b'"$$blob"', b'"request":true'),
    *(b"/*", b"/>", b"/_WEFT", b"NaN", b"1e999", b"-0", b"\\ud800", b"[", b"{}", b"null", b"\0"),
)

TARGET = Target(outcome, _seeds, _WORDS)
