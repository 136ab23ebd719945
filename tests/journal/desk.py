"""Batches, segments and whole journals for tests, made with the real thing."""

from pathlib import Path

from weft.broker.delivery.arena import ARENA_BYTES, Arena
from weft.broker.journal.batcher import Journal, JournalBatch
from weft.journal.segment.blocks import Block, BlockKind, blocks_in, header_of
from weft.journal.segment.direct_io import BORDER_BYTES, end_on_border
from weft.journal.segment.file_names import JournalFolder
from weft.journal.segment.writer import OpenSegment
from weft.wire.frames import Flag, Kind, Stamp, encode, stamp_frame

ORIGIN = 0xABCD


def message(number: int, subject: bytes = b"sensors.a", body: bytes = b"") -> bytes:
    """A stamped frame whose sequence is a number."""
    frame = bytearray(encode(Kind.MESSAGE, subject, body or b"body %d" % number, b"", Flag.BARE))
    stamp = Stamp(ORIGIN, publisher=3, sequence=number, time_ns=1_700_000_000_000_000_000 + number)
    stamp_frame(frame, 0, stamp)
    return bytes(frame)


def batch_of(frames: list[bytes], first: int, per_block: int = 0) -> JournalBatch:
    """A batch of frames, so many in a block."""
    size = per_block or len(frames)
    # What is in a block came in one turn.
    arena = Arena(max(ARENA_BYTES, size * max(map(len, frames))))
    batches: list[JournalBatch] = []
    journal = Journal([b">"], first, arena, batches.append)
    made = JournalBatch()
    for at in range(0, len(frames), size):
        for frame in frames[at : at + size]:
            start = arena.put(frame)
            journal.take(start, start + len(frame), 1)
        journal.keep()
        for outbox in arena.waiting:
            outbox.settle(0)
        arena.reset()
        batch = batches.pop()
        offset = made.writer.reserve(batch.size)
        made.data[offset : offset + batch.size] = batch.data[batch.start : batch.end]
        made.blocks.extend(
            each._replace(start=each.start + offset, end=each.end + offset) for each in batch.blocks
        )
        made.latest_ns = max(made.latest_ns, batch.latest_ns)
        journal.written(batch)
    return made


def on_border(batch: JournalBatch) -> JournalBatch:
    """The same batch where the disk would have it, as one that was written before."""
    made = JournalBatch()
    made.writer.reserve(batch.size + 4 * BORDER_BYTES)
    for _ in range(2):
        made.clear()
        offset = made.writer.reserve(batch.size)
        made.data[offset : offset + batch.size] = batch.data[batch.start : batch.end]
        made.blocks.extend(
            each._replace(start=each.start + offset, end=each.end + offset) for each in batch.blocks
        )
        # The first time it learns where that is.
        end_on_border(made, 0)
    return made


def place_in(folder: Path, service: str = "weather", node: str = "london") -> JournalFolder:
    """A place that is there."""
    place = JournalFolder(folder, service, node)
    place.folder.mkdir(parents=True, exist_ok=True)
    return place


def written(place: JournalFolder, count: int, first: int = 0, per_block: int = 10) -> OpenSegment:
    """An open segment of so many messages."""
    segment = OpenSegment(place, first)
    frames = [message(first + number) for number in range(count)]
    if frames:
        segment.append(batch_of(frames, first, per_block))
    return segment


def spoil_frames(path: Path, number: int, filling: bytes = b"\0") -> None:
    """Make the frames of one block not whole, and its checksums right all the same."""
    data = bytearray(path.read_bytes())
    blocks = [each for each in blocks_in(bytes(data)) if isinstance(each, Block)]
    block = [each for each in blocks if each.kind == BlockKind.FRAMES][number]
    body = filling * (block.end - block.body)
    data[block.start : block.end] = (
        header_of(BlockKind.FRAMES, body, block.frames, block.first, block.salt) + body
    )
    path.write_bytes(data)
