from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.journal.desk import batch_of, message, place_in

from weft.journal.parquet.row_groups import batches_of, block_parts, grouped, open_file
from weft.journal.segment.blocks import Block, BlockKind, blocks_in, salt_of
from weft.journal.segment.writer import OpenSegment

KB = 1 << 10


def file_of(path: Path, sizes: list[list[int]]) -> Path:
    """A file with a row group for each list, of bodies of so many bytes."""
    schema = pa.schema([("position", pa.int64()), ("payload", pa.binary())])
    position = 0
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for group in sizes:
            positions = list(range(position, position + len(group)))
            bodies = [bytes(size) for size in group]
            writer.write_table(pa.table([positions, bodies], schema=schema))
            position += len(group)
    return path


def rows_in(path: Path, size_bytes: int, columns: list[str] | None = None) -> list[list[int]]:
    """The positions of every batch."""
    with open_file(path) as file:
        groups = range(file.num_row_groups)
        found = batches_of(file, groups, columns, rows=100, size_bytes=size_bytes)
        return [batch.column("position").to_pylist() for batch in found]


def test_small_groups_are_read_together(tmp_path: Path) -> None:
    path = file_of(tmp_path / "f", [[KB] * 3] * 3)
    assert rows_in(path, 1 << 20) == [list(range(9))]


def test_groups_are_read_apart_when_they_are_larger_together(tmp_path: Path) -> None:
    path = file_of(tmp_path / "f", [[KB] * 3] * 3)
    assert rows_in(path, 13 * KB) == [list(range(6)), [6, 7, 8]]


def test_a_large_group_is_read_in_equal_parts(tmp_path: Path) -> None:
    path = file_of(tmp_path / "f", [[KB] * 2, [10 * KB] * 8, [KB] * 2])
    assert rows_in(path, 30 * KB) == [[0, 1], [2, 3, 4], [5, 6, 7], [8, 9], [10, 11]]


def test_a_message_over_the_bound_is_a_batch_by_itself(tmp_path: Path) -> None:
    path = file_of(tmp_path / "f", [[10 * KB] * 3])
    assert rows_in(path, KB) == [[0], [1], [2]]


def test_only_columns_that_are_read_count(tmp_path: Path) -> None:
    path = file_of(tmp_path / "f", [[10 * KB] * 3] * 3)
    assert rows_in(path, KB, ["position"]) == [list(range(9))]


def test_batches_become_groups_of_a_size() -> None:
    batches = [
        pa.record_batch([pa.array([bytes(size)] * 2, pa.binary())], ["payload"])
        for size in (KB, KB, 50 * KB, KB, KB)
    ]
    tables = list(grouped(batches, 100, 10 * KB))
    assert [table.num_rows for table in tables] == [4, 2, 4]
    assert [table.num_rows for table in grouped(batches, 3, 1 << 30)] == [4, 4, 2]


def block_of(root: Path, sizes: list[int]) -> tuple[bytes, Block]:
    """A segment, and its only block of messages."""
    segment = OpenSegment(place_in(root), 5)
    frames = [message(5 + at, body=bytes([at]) * size) for at, size in enumerate(sizes)]
    segment.append(batch_of(frames, 5))
    segment.abandon()
    data = segment.path.read_bytes()
    blocks = [each for each in blocks_in(data, salt=salt_of(data)) if isinstance(each, Block)]
    (block,) = [each for each in blocks if each.kind == BlockKind.FRAMES]
    return data, block


def test_a_block_is_taken_apart_where_it_is_large(tmp_path: Path) -> None:
    data, block = block_of(tmp_path, [KB, KB, 9 * KB, KB, KB])
    found = list(block_parts(data, block, 3 * KB))
    assert [(each.first, each.rows) for each in found] == [(5, 2), (7, 1), (8, 2)]
    assert b"".join(each.frames for each in found) == data[block.body : block.end]
    assert [each.rows for each in block_parts(data, block)] == [5]


def test_a_large_block_without_whole_frames_is_an_error(tmp_path: Path) -> None:
    data, block = block_of(tmp_path, [KB, KB])
    spoilt = data[: block.body] + bytes(block.end - block.body) + data[block.end :]
    with pytest.raises(ValueError, match="position 5 has no whole message"):
        list(block_parts(spoilt, block, KB))
