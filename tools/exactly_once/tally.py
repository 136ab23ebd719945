"""What went in, beside what came out: both are read from the journals."""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple

from tools.exactly_once.gateway import SERVICE, Gateway
from tools.exactly_once.source import END, FIRST

import weft
from weft.journal.read.messages import history
from weft.journal.read.record import JournalRecord

_WINDOW = timedelta(minutes=10)

Row = tuple[Hashable, ...]


class Tally(NamedTuple):
    """A query in numbers."""

    read: int
    expected: int
    written: int
    lost: list[Row]
    doubled: list[Row]
    wrong: list[Row]

    @property
    def is_right(self) -> bool:
        """Say if every row that should be there is, once, and no other."""
        return not (self.lost or self.doubled or self.wrong)


def tally(query: str, gateways: Sequence[Gateway], sink: Gateway) -> Tally:
    """Compare; nobody writes any more."""
    read = list(_read(gateways))
    expected = Counter(_copies(read) if query == "copy" else _windows(read))
    written = Counter(_written(sink, query))
    return Tally(
        read=len(read),
        expected=expected.total(),
        written=written.total(),
        lost=list((expected - written).elements()),
        doubled=[row for row, times in written.items() if times > 1],
        wrong=[row for row in written if row not in expected],
    )


def _read(gateways: Sequence[Gateway]) -> Iterator[tuple[str, int, weft.Message]]:
    for gateway in gateways:
        for position, subject, message in _messages(gateway):
            if subject.startswith("in."):
                yield gateway.node, position, message


def _copies(read: list[tuple[str, int, weft.Message]]) -> Iterator[Row]:
    for node, position, message in read:
        yield node, position, message["n"]


def _windows(read: list[tuple[str, int, weft.Message]]) -> Iterator[Row]:
    counts: Counter[tuple[Hashable, int]] = Counter()
    totals: Counter[tuple[Hashable, int]] = Counter()
    for _, _, message in read:
        if message["at"] == END:
            # The window that it is in has not ended.
            continue
        start = FIRST + (message["at"] - FIRST) // _WINDOW * _WINDOW
        counts[start, message["n"] % 10] += 1
        totals[start, message["n"] % 10] += message["n"]
    for (start, key), rows in counts.items():
        yield start, key, rows, totals[start, key]


def _written(sink: Gateway, query: str) -> Iterator[Row]:
    names = ("node", "position", "n") if query == "copy" else ("start", "key", "rows", "total")
    for _, subject, message in _messages(sink):
        if subject == f"out.{query}":
            yield tuple(message[name] for name in names)


def _messages(gateway: Gateway) -> Iterator[tuple[int, str, weft.Message]]:
    root = gateway.place.folder.parent
    for found in history(root, SERVICE, gateway.node, first=0):
        if isinstance(found, JournalRecord):
            subject = found.frame[32 : 32 + found.frame[6]].decode()
            yield found.position, subject, weft.Message.from_frame(found.frame)
