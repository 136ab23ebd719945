"""Fuzzes what a browser posts for its tunnel: a text becomes events, and comes back as datagrams.

An input is a body for `/events`, a zero byte, and the pages of the journal; `/INBOX` in it stands
for the tunnel's own path. Everything that is told is JSON, line by line, and nothing is left over.
"""

import json
import re
from collections.abc import Iterator

from fuzz.lodge import Lodge
from fuzz.targets import Broken, Target
from weft.transports.http.exchange import Request
from weft.transports.tunnel.registry import Tunnels
from weft.transports.tunnel.uplink import Events
from weft.wire.frames import Flag, Kind, Stamp, encode, stamp_frame
from weft.wire.message.message import Message

_OPEN = Request("GET", "default", "tunnel", (), {"new": "1", "format": "ndjson"}, {})
# The inbox of a peer, as errors name it: random, so different in every run.
_RANDOM = re.compile(r"_INBOX\.[0-9a-f]{8}\.[0-9a-f]{24}")
_STATUSES = (202, 400, 403, 404, 413, 429, 500, 503)


def outcome(data: bytes) -> str:
    """What a tunnel is told after one request to `/events`."""
    text, _, page = data.partition(b"\0")
    lodge = Lodge(page)
    tunnels = Tunnels(lodge.house)
    stream = lodge.ask(tunnels.answer, _OPEN)
    header = json.loads(stream.body)
    known_by, path = header["tunnel"], header["path"]
    body = text.replace(b"/INBOX", path.encode())
    headers = {"weft-tunnel": known_by}
    posted = Request("POST", "default", "events", (), {}, headers, body)
    answer = lodge.ask(Events(lodge.house, tunnels).answer, posted)
    if answer.status not in _STATUSES:
        raise Broken(f"a request is answered with {answer.status}")
    json.loads(answer.body)
    for line in stream.body.splitlines():
        if line:
            json.loads(line)
    tunnel = tunnels.known(known_by)
    if tunnel is not None:
        tunnel.left()
    lodge.check_empty()
    told = f"{answer.status} {answer.body!r}\n{stream.body!r}"
    return _RANDOM.sub("INBOX", told.replace(known_by, "ID").replace(path, "/INBOX"))


def page_seeds() -> Iterator[bytes]:
    """Pages of a journal that are right, wrong in their sizes, or hold other frames."""
    message = bytearray(encode(Kind.MESSAGE, b"a.b", b"kept", flags=Flag.BARE))
    stamp_frame(message, 0, Stamp(7, publisher=3, sequence=5, time_ns=9))
    whole = bytes(message)
    yield b""
    yield whole
    yield whole + whole[:16] + b"\6" + whole[17:]
    yield bytes(32)
    yield whole + b"\xff\xff\xff\xff" + whole[4:]
    yield whole[:-1]
    yield encode(Kind.GOODBYE, body=Message(reason="x", elsewhere=["a:1"]).encode())


def _seeds() -> Iterator[bytes]:
    datagrams: list[dict[str, object]] = [
        {"path": "/a/b", "data": {"x": 1}, "ack": 1},
        {"path": "/INBOX/1", "data": {"$blob": "AAAA"}},
        {"path": "/a", "request": True, "reply": "/INBOX/r", "data": None, "ack": "a"},
        {"path": "/_WEFT/ask/subscriptions", "request": True, "reply": "/INBOX/s"},
        {"interest": "/a", "subpaths": True, "since": "1h", "ack": 2},
        {"interest": "/a/*", "group": "g", "policy": "latest", "listen_only": False},
        {"forget": "/a", "subpaths": True, "ack": 3},
        {"ping": "x", "tunnel": "not mine"},
        {"goodbye": "x"},
    ]
    for page in page_seeds():
        yield json.dumps(datagrams[:5]).encode() + b"\0" + page
    yield json.dumps(datagrams).encode()
    for datagram in datagrams:
        yield json.dumps([datagram]).encode()
    yield b"[" * 2000


_WORDS = (
    *(b'"path":', b'"interest":', b'"forget":', b'"data":', b'"since":', b'"ack":', b'"reply":'),
    *(b'"request":true', b'"masked":true', b'"subpaths":true', b'"tunnel":', b'{"$blob":"'),
    *(b"/INBOX/", b"/_WEFT/ask/", b"[", b"{}", b"null", b"1e999", b"\\ud800", b"\0"),
)

TARGET = Target(outcome, _seeds, _WORDS)
