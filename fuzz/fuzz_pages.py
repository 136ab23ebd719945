"""Fuzzes pages of history, at the doors and in the files that they are read from.

An input is a page that a peer without a journal of its own is told, and it is a block of a segment
whose checksums are right. Readers tell of messages that are whole, of holes, and of nothing else.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from fuzz.fuzz_events import page_seeds
from fuzz.targets import Broken, Target, said
from weft.errors import WeftError
from weft.journal.read.history_pages import JournalPages, PageRequest
from weft.journal.read.messages import history
from weft.journal.read.record import JournalRecord
from weft.journal.segment.blocks import BlockKind, about_block, header_of
from weft.journal.segment.file_names import JournalFolder
from weft.transports.peer_replay import Recalls
from weft.wire.frame_splitting import each_frame
from weft.wire.frames import Flag, Kind, check_whole, encode, parse
from weft.wire.message.message import Field, Message
from weft.wire.nonces import Nonces

_INBOX = b"_INBOX.00000001.000000010000000000000007."
_TOLD = (Kind.MESSAGE, Kind.GAP, Kind.ERROR)
_ROOT = Path(tempfile.mkdtemp(prefix="weft-fuzz-pages-"))


def outcome(data: bytes) -> str:
    """Tell of an input as a page, as what is in a page, and as what is in a file."""
    page = Message(Field.blob("frames", data[1:]), node="a", next=1, head=1, left=0, missing=0)
    return f"{_recalled(data)}\n{_recalled(page.encode())}\n{_kept(data)}"


def _recalled(page: bytes) -> str:
    """What a peer is told by a page, and asked after it."""
    recalls = Recalls(_INBOX, Nonces(bytes))
    recalls.begin(encode(Kind.SUBSCRIBE, b"a.*"), 0)
    (question,) = recalls.words
    try:
        told = recalls.pass_on(
            encode(Kind.MESSAGE, parse(question).reply, page, flags=Flag.FROM_GATEWAY)
        )
    except WeftError as error:
        return said(error)
    frames = [parse(each) for each in each_frame(told)]
    if any(frame.kind not in _TOLD for frame in frames):
        raise Broken(f"a page tells of {frames}")
    return f"{frames} {len(recalls)}"


_SALT = 7


def _kept(data: bytes) -> str:
    """What is read from a segment: one block, whose first byte says how many messages it has."""
    count = data[0] if data else 0
    place = JournalFolder(_ROOT, "a", "b")
    place.folder.mkdir(parents=True, exist_ok=True)
    body = data[1:]
    block = header_of(BlockKind.FRAMES, body, count, 0, _SALT) + body
    place.open(0).write_bytes(about_block(b"{}", 0, _SALT) + block)
    found = list(history(_ROOT, "a", "b"))
    for each in found:
        if isinstance(each, JournalRecord):
            check_whole(each.frame)
    pages = JournalPages(_ROOT, "a", "b")
    page = pages.page(PageRequest((b">",), 0, count, 256))
    return f"{found} {page} {pages.position_at(1)}"


def _seeds() -> Iterator[bytes]:
    for page in page_seeds():
        for count in (1, 2, 255):
            yield bytes([count]) + page
    yield Message(node="a", next=5, head=9, missing=5, left=0, frames=b"").encode()
    yield Message(node="a", next=1, head=1, missing=0, left=9, frames=b"part").encode()
    yield Message(node="a", next=1, head=-1, missing=-5, left=0, frames=b"").encode()


_WORDS = (
    *(b"frames", b"next", b"head", b"left", b"missing", b"node"),
    *(b"\x20\0\0\0\5", b"\x1f\0\0\0", b"\xff\xff\xff\xff", bytes(8), b"a.b"),
)

TARGET = Target(outcome, _seeds, _WORDS)
