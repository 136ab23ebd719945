"""A journal to measure with, written by the journal's own code and as a gateway would write it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from weft.broker.delivery.arena import Arena
from weft.broker.journal.batcher import Journal, JournalBatch
from weft.journal.segment.file_names import JournalFolder
from weft.journal.segment.writer import OpenSegment
from weft.journal.writer_thread import WriterSettings
from weft.wire.frames import Kind, Stamp, encode, stamp_frame
from weft.wire.message.message import Message

SERVICE = "weather"
NODE = "london"
CITIES = ("london", "paris", "vienna", "oslo", "rome", "berlin", "madrid", "athens", "bern", "riga")
STATIONS = 10
# When a gateway begins a new one.
SEGMENT_BYTES = WriterSettings().segment_bytes
# How many messages a turn of the gateway brings.
_TURN = 500
_SEED = 20260101
_FIRST_NS = 1_700_000_000_000_000_000

Progress = Callable[[int], object]


def write(root: Path, rows: int, told: Progress, *, is_open: bool = False) -> None:
    """Write so many messages of six fields and about 200 bytes, as segments that are full.

    Args:
        root: the folder of journals.
        rows: how many.
        told: is called with how many were written.
        is_open: leave all of them in one segment, which is still open.
    """
    place = JournalFolder(root, SERVICE, NODE)
    place.folder.mkdir(parents=True)
    segment = OpenSegment(place, 0)
    for batch in _batches(rows):
        segment.append(batch)
        told(segment.next)
        if not is_open and segment.size >= SEGMENT_BYTES and segment.next < rows:
            segment.finish()
            segment = OpenSegment(place, segment.next)
    if is_open:
        segment.sync()
        segment.abandon()
    else:
        segment.finish()


def _batches(rows: int) -> Iterator[JournalBatch]:
    arena = Arena()
    chance = Random(_SEED)
    written: list[JournalBatch] = []
    journal = Journal([b">"], 0, arena, written.append)
    for first in range(0, rows, _TURN):
        count = min(_TURN, rows - first)
        frames = b"".join(_frame(number, chance) for number in range(first, first + count))
        start = arena.put(frames)
        journal.take(start, start + len(frames), count)
        journal.keep()
        for outbox in arena.waiting:
            outbox.settle(0)
        arena.reset()
        for batch in written:
            yield batch
            journal.written(batch)
        written.clear()


def _frame(number: int, chance: Random) -> bytes:
    city = CITIES[number % len(CITIES)]
    station = number // len(CITIES) % STATIONS
    # As little alike as measurements are, or there would be nothing to decompress.
    body = Message(
        city=city,
        station=f"station {station} of {city}, {chance.getrandbits(64):016x}",
        temp=chance.gauss(15, 8),
        pressure=chance.randrange(97_000, 104_000),
        count=number,
        dry=chance.random() < 0.5,
    ).encode()
    frame = bytearray(encode(Kind.MESSAGE, f"sensors.{city}.{station}".encode(), body))
    stamp_frame(frame, 0, Stamp(7, station + 1, number + 1, _FIRST_NS + number * 100_000))
    return bytes(frame)
