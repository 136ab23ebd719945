"""The process that reads a journal for those who catch up, so that its worker need not.

It is asked over a stream, answers one question after the other, and ends with the stream.
"""

import signal
import socket
import struct
import sys
from pathlib import Path

import msgspec

from weft.errors import WeftError
from weft.journal.read.history_pages import Pages, Question

SIZE = struct.Struct("<I")


class Look(msgspec.Struct, frozen=True, tag=True):
    """Worker to archivist: a page, please; `first` is None for the one of a time."""

    number: int
    patterns: tuple[str, ...]
    first: int | None
    time_ns: int
    until: int
    max_bytes: int
    offset: int


class Found(msgspec.Struct, frozen=True, tag=True):
    """Archivist to worker: the page."""

    number: int
    frames: bytes
    next: int
    left: int
    missing: int


class Trouble(msgspec.Struct, frozen=True, tag=True):
    """Archivist to worker: the journal cannot be read, and why."""

    number: int
    text: str


Answer = Found | Trouble


def answer(pages: Pages, look: Look) -> Answer:
    """Look something up."""
    patterns = tuple(pattern.encode() for pattern in look.patterns)
    try:
        first = look.first
        if first is None:
            found = pages.position_at(look.time_ns)
            first = look.until if found is None else found
        page = pages.page(Question(patterns, first, look.until, look.max_bytes, look.offset))
    except (OSError, ValueError, WeftError) as error:
        # One damaged file must not end the process: the next question would start it again.
        return Trouble(look.number, str(error))
    # What is asked for may lie behind what is there: that is no reason to go back.
    return Found(look.number, page.frames, page.next, page.left, page.missing)


def main(arguments: list[str]) -> int:
    """Answer on the descriptor that the worker names, about one journal."""
    # Its worker ends it, by ending the stream.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    descriptor, root, service, node = arguments
    pages = Pages(Path(root), service, node)
    with socket.socket(fileno=int(descriptor)) as control, control.makefile("rb") as stream:
        while head := stream.read(SIZE.size):
            (size,) = SIZE.unpack(head)
            look = msgspec.msgpack.decode(stream.read(size), type=Look)
            body = msgspec.msgpack.encode(answer(pages, look))
            try:
                control.sendall(SIZE.pack(len(body)) + body)
            except ConnectionError:
                # The worker is gone, and so is whoever asked.
                break
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
