"""File server process: serves a gateway's journal over HTTP.

It receives connections whose request is already read, answers several at a time, each on a thread,
and exits when its socket is closed. Files go from the disk to the network unchanged: the client
parses them.

    GET /journal/weather                             list of segments, JSON
    GET /journal/weather/position?time_ns=…          the first position at a time, JSON
    GET /journal/weather/blocks/NAME?first=…         blocks of a segment that is not sealed
    GET /journal/weather/sealed/DAY/NAME             a sealed segment, or a range of its bytes
"""

import contextlib
import os
import re
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from weft.broker.handshake import SERVICE_NAME
from weft.errors import BadOption, NoSuchService, NotKnown, Overloaded, TooMany, WeftError
from weft.gateway.journal.lend import FileRequest, FileRequestRefused
from weft.gateway.journal.reader_queue import Readers
from weft.gateway.journal.transfer import Transfer
from weft.journal.parquet.sealed_files import CHECKED, Damaged
from weft.journal.read.history_pages import JournalPages
from weft.journal.read.messages import mapped
from weft.journal.segment.block_index import LANDMARKS
from weft.journal.segment.blocks import (
    Block,
    BlockKind,
    Bytes,
    Damage,
    block_at,
    blocks_in,
    resalted,
    salt_of,
)
from weft.journal.segment.file_names import Segment, segment_at, segments_of
from weft.journal.segment.tail import Tails
from weft.transports.http.exchange import JSON, error_body

# Approximate bytes of blocks per response.
BLOCKS_BYTES = 8 << 20
PIECE_BYTES = 256 << 10
REQUEST_MAX_BYTES = 8 << 10
NEXT_HEADER = "Weft-Next"
SALT_HEADER = "Weft-Salt"

# Live traffic has priority.
_NICE = 10
_RANGE = re.compile(r"bytes=(?P<first>\d{1,18})-(?P<last>\d{0,18})|bytes=-(?P<suffix>\d{1,18})")


class FileRefusal(Exception):
    """Error response: its status and error."""

    def __init__(self, status: str, error: WeftError) -> None:
        super().__init__(str(error))
        self.status = status
        self.error = error


class Library:
    """The journals that a gateway serves; no other files are accessible."""

    def __init__(self, root: Path, node: str) -> None:
        self._root = root
        self._node = node
        self._tails: dict[str, Tails] = {}
        self._lock = threading.Lock()

    def answer(self, out: Transfer, request: FileRequest) -> None:
        """Answer one request.

        Raises:
            OSError: The client has closed the connection, or is too slow.
        """
        try:
            self._answer(out, request)
        except FileRefusal as refusal:
            _send(out, request, error_body(refusal.error), status=refusal.status)

    def _answer(self, out: Transfer, request: FileRequest) -> None:
        parts = urlsplit(request.target)
        match [unquote(name) for name in parts.path.split("/")[2:]]:
            case [service]:
                _send(out, request, self._listing(_checked(service)))
            case [service, "position"]:
                time_ns = _number(parts.query, "time_ns")
                pages = JournalPages(self._root, _checked(service), self._node)
                found = pages.position_at(time_ns)
                _send(out, request, msgspec.json.encode({"position": found}))
            case [service, "blocks", name]:
                first = _number(parts.query, "first")
                self._send_blocks(out, request, self._segment(service, name), first)
            case [service, "sealed", day, name]:
                segment = self._segment(service, f"{day}/node={self._node}/{name}")
                _check(segment)
                _send_file(out, request, segment)
            case _:
                raise FileRefusal("404 Not Found", NotKnown("there is no such page; see /"))

    def _listing(self, service: str) -> bytes:
        """Return the segments of a service, and the end position of its journal, as JSON."""
        segments = segments_of(self._root, service, self._node)
        with self._lock:
            tails = self._tails.setdefault(service, Tails(self._root, service, self._node))
            ends = tails.ends()
            ids = tails.ids()
        return msgspec.json.encode(
            {
                "node": self._node,
                "id": ids.get(self._node),
                "end": ends.get(self._node, 0),
                "segments": [
                    {
                        "name": self._name_of(each),
                        "state": each.state,
                        "first": each.first,
                        "last": each.last,
                    }
                    for each in segments
                ],
            }
        )

    def _name_of(self, segment: Segment) -> str:
        return str(segment.path.relative_to(self._root / f"service={segment.service}"))

    def _segment(self, service: str, name: str) -> Segment:
        """Return the listed segment of this name: no other file is ever opened."""
        segment = segment_at(self._root, _checked(service), self._node, name)
        if segment is None:
            raise FileRefusal("404 Not Found", _no_segment())
        return segment

    def _send_blocks(
        self, out: Transfer, request: FileRequest, segment: Segment, first: int
    ) -> None:
        """Send whole blocks from the one with a position on; a header has the next position.

        The blocks are salted again: a client with a segment's salt could publish forged blocks.
        """
        salt = secrets.randbits(64)
        with _mapped(segment) as data:
            own = salt_of(data, is_full=segment.state == "full")
            start = LANDMARKS.start(segment.path, data, first, own)
            blocks = _lent(data, start, own)
            after = max((each.first + each.frames for each in blocks), default=first)
            head = {NEXT_HEADER: str(max(after, first)), SALT_HEADER: str(salt)}
            size = sum(each.end - each.start for each in blocks)
            _send_head(out, "200 OK", "application/octet-stream", size, head)
            if not request.is_head:
                for piece in _pieces(data, blocks, salt):
                    out.send(piece)


@contextmanager
def _mapped(segment: Segment) -> Iterator[Bytes]:
    try:
        with mapped(segment.path) as data:
            yield data
    except FileNotFoundError as error:
        raise FileRefusal("404 Not Found", _no_segment()) from error


def _lent(data: Bytes, start: int, salt: int) -> list[Block]:
    """Return message blocks from an offset on, about BLOCKS_BYTES.

    Bodies are not verified: the client does. Damaged headers are skipped.
    """
    found: list[Block] = []
    at, size = start, 0
    while at < len(data) and size < BLOCKS_BYTES:
        block = block_at(data, at, salt)
        if block is None:
            damage = next(blocks_in(data, at, salt))
            if not isinstance(damage, Damage) or damage.is_tail:
                break
            at = damage.end
            continue
        if block.end > len(data):
            break
        if block.kind in (BlockKind.FRAMES, BlockKind.TORN):
            found.append(block)
            size += block.end - block.start
        at = block.end
    return found


def _pieces(data: Bytes, blocks: list[Block], salt: int) -> Iterator[bytes]:
    """Yield blocks with another salt, in pieces of about PIECE_BYTES."""
    piece = bytearray()
    for block in blocks:
        piece += resalted(block, salt)
        piece += data[block.body : block.end]
        if len(piece) >= PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


def _checked(service: str) -> str:
    if SERVICE_NAME.fullmatch(service.encode(errors="surrogatepass")) is None:
        raise FileRefusal("404 Not Found", NoSuchService("there is no such service"))
    return service


def _number(query: str, name: str) -> int:
    given = parse_qs(query).get(name, [""])[0]
    if not given.isdecimal() or not given.isascii() or len(given) > 20:
        raise FileRefusal("400 Bad Request", BadOption(f"{name} must be a whole number"))
    return int(given)


def _check(segment: Segment) -> None:
    try:
        CHECKED.check(segment)
    except Damaged as error:
        raise FileRefusal("410 Gone", NotKnown(str(error))) from error
    except FileNotFoundError as error:
        raise FileRefusal("404 Not Found", _no_segment()) from error


@contextmanager
def _opened(segment: Segment) -> Iterator[Any]:
    try:
        file = segment.path.open("rb")
    except FileNotFoundError as error:
        raise FileRefusal("404 Not Found", _no_segment()) from error
    with file:
        yield file


def _send_file(out: Transfer, request: FileRequest, segment: Segment) -> None:
    with _opened(segment) as file:
        size = os.fstat(file.fileno()).st_size
        found = _RANGE.fullmatch(request.range)
        if found is None:
            start, end, status, more = 0, size, "200 OK", {}
        else:
            start, end = _span(found, size)
            if start >= end:
                raise FileRefusal(
                    "416 Range Not Satisfiable", BadOption(f"the file has {size} bytes")
                )
            status = "206 Partial Content"
            more = {"Content-Range": f"bytes {start}-{end - 1}/{size}"}
        _send_head(out, status, "application/octet-stream", end - start, more)
        if not request.is_head and end > start:
            out.send_file(file, start, end - start)


def _span(found: re.Match[str], size: int) -> tuple[int, int]:
    """Return the byte range of a Range header, for a file of this size."""
    if found["suffix"]:
        return max(size - int(found["suffix"]), 0), size
    return int(found["first"]), min(int(found["last"]) + 1, size) if found["last"] else size


def _no_segment() -> NotKnown:
    return NotKnown("this segment does not exist any more")


def _send(out: Transfer, request: FileRequest, body: bytes, *, status: str = "200 OK") -> None:
    """Send JSON."""
    _send_head(out, status, JSON, len(body), {})
    if not request.is_head:
        out.send(body)


def _send_head(out: Transfer, status: str, kind: str, size: int, more: dict[str, str]) -> None:
    out.send(_head(status, kind, size, more))


def _head(status: str, kind: str, size: int, more: dict[str, str]) -> bytes:
    headers = {
        "Content-Type": kind,
        "Content-Length": str(size),
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Connection": "close",
        **more,
    }
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def refuse(readers: Readers, sock: socket.socket, error: WeftError) -> None:
    """Send a reader that it is refused, without blocking."""
    status = "429 Too Many Requests" if isinstance(error, TooMany) else "503 Service Unavailable"
    body = error_body(error)
    sock.setblocking(False)
    try:
        sock.send(_head(status, JSON, len(body), {"Retry-After": "1"}) + body)
    except OSError as failure:
        print(f"refusal not sent to a reader: {failure}", file=sys.stderr)
    readers.lingering.add(sock)


def tell(source: socket.socket, request: FileRequest, error: WeftError) -> None:
    """Report a refusal to the gateway, which counts it; skipped if its buffer is full."""
    news = FileRequestRefused(name=type(error).__name__, text=str(error), peer=request.peer)
    with contextlib.suppress(BlockingIOError):
        source.send(msgspec.json.encode(news), socket.MSG_DONTWAIT)


def main(arguments: list[str]) -> int:
    """Serve the journals in a folder to connections received on a file descriptor."""
    # The gateway ends it by closing the socket.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.nice(_NICE)
    descriptor, root, node = arguments
    library = Library(Path(root), node)
    with (
        socket.socket(fileno=int(descriptor)) as source,
        contextlib.closing(Readers(library.answer)) as readers,
    ):
        while True:
            data, descriptors, _, _ = socket.recv_fds(source, REQUEST_MAX_BYTES, 1)
            if not data:
                return 0
            request = msgspec.json.decode(data, type=FileRequest)
            sock = socket.socket(fileno=descriptors[0])
            try:
                readers.take(sock, request)
            except (Overloaded, TooMany) as error:
                refuse(readers, sock, error)
                tell(source, request, error)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
