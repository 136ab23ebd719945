"""History process: reads a journal for replays, so that its worker does not block on the disk.

It answers requests on a stream, one after another, and exits when the stream is closed.
"""

import signal
import socket
import struct
import sys
from pathlib import Path

import msgspec

from weft.errors import WeftError
from weft.journal.read.history_pages import JournalPages, PageRequest

SIZE = struct.Struct("<I")


class Look(msgspec.Struct, frozen=True, tag=True):
    """Worker to history process: request for a page; `first` is None for the page of a time."""

    number: int
    patterns: tuple[str, ...]
    first: int | None
    time_ns: int
    until: int
    max_bytes: int
    offset: int


class FoundPage(msgspec.Struct, frozen=True, tag=True):
    """History process to worker: the page."""

    number: int
    frames: bytes
    next: int
    left: int
    missing: int


class Trouble(msgspec.Struct, frozen=True, tag=True):
    """History process to worker: the journal is unreadable, and why."""

    number: int
    text: str


Answer = FoundPage | Trouble


def answer(pages: JournalPages, look: Look) -> Answer:
    """Return the answer to a request."""
    patterns = tuple(pattern.encode() for pattern in look.patterns)
    try:
        first = look.first
        if first is None:
            found = pages.position_at(look.time_ns)
            first = look.until if found is None else found
        page = pages.page(PageRequest(patterns, first, look.until, look.max_bytes, look.offset))
    except (OSError, ValueError, WeftError) as error:
        # A damaged file must not end the process: the next request would fail again.
        return Trouble(look.number, str(error))
    # The requested position may be after the end: do not return an earlier one.
    return FoundPage(look.number, page.frames, page.next, page.left, page.missing)


def main(arguments: list[str]) -> int:
    """Answer requests about one journal on the file descriptor given by the worker."""
    # The worker ends it by closing the stream.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    descriptor, root, service, node = arguments
    pages = JournalPages(Path(root), service, node)
    with socket.socket(fileno=int(descriptor)) as control, control.makefile("rb") as stream:
        while head := stream.read(SIZE.size):
            (size,) = SIZE.unpack(head)
            look = msgspec.msgpack.decode(stream.read(size), type=Look)
            body = msgspec.msgpack.encode(answer(pages, look))
            try:
                control.sendall(SIZE.pack(len(body)) + body)
            except ConnectionError:
                # The worker has ended, and with it the requesters.
                break
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
