"""Journals that tests of Spark read."""

from pathlib import Path

import pytest
from tests.journal.desk import batch_of, place_in

from weft.journal.segment.writer import OpenSegment
from weft.wire.frames import Kind, Stamp, encode, stamp_frame
from weft.wire.message.message import Message


class Book:
    """A journal of typed messages that a test writes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(
        self,
        messages: list[Message],
        first: int = 0,
        node: str = "london",
        *,
        is_open: bool = False,
    ) -> None:
        """Write a segment of messages to `sensors.a` and `sensors.b` in turn."""
        place = place_in(self.root, node=node)
        segment = OpenSegment(place, first)
        frames = [_frame(first + row, message) for row, message in enumerate(messages)]
        segment.append(batch_of(frames, first, 10))
        if is_open:
            segment.abandon()
        else:
            segment.finish()

    def numbers(
        self, count: int, first: int = 0, node: str = "london", *, is_open: bool = False
    ) -> None:
        """Write a segment of messages with a number each."""
        messages = [Message(n=first + row, half=(first + row) / 2) for row in range(count)]
        self.write(messages, first, node, is_open=is_open)


def _frame(number: int, message: Message) -> bytes:
    subject = b"sensors.a" if number % 2 == 0 else b"sensors.b"
    frame = bytearray(encode(Kind.MESSAGE, subject, message.encode()))
    stamp = Stamp(
        7, publisher=3, sequence=number, time_ns=1_700_000_000_000_000_000 + number * 1000
    )
    stamp_frame(frame, 0, stamp)
    return bytes(frame)


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """An empty journal."""
    return Book(tmp_path)
