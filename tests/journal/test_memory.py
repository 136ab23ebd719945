"""What large messages take in memory: what is bounded, and not how many there are of them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.journal.peak import BODY_BYTES, COUNT, DAY, SEGMENT_MESSAGES

from weft.journal.parquet.row_groups import GROUP_BYTES
from weft.journal.segment.file_names import segments_of

# With all libraries, and a few copies of what is bounded; the messages alone have 384 MiB, and
# took three times that or more.
PEAK_MAX_BYTES = 512 << 20


def done(what: str, folder: Path) -> tuple[int, int]:
    """Do it in a process of its own: for how many messages, and its peak."""
    command = [sys.executable, "-m", "tests.journal.peak", what, str(folder)]
    found = subprocess.run(command, check=True, timeout=120, capture_output=True, text=True)  # noqa: S603  # ours
    messages, peak = map(int, found.stdout.split())
    return messages, peak


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Segments that are not sealed yet."""
    folder = tmp_path_factory.mktemp("full")
    done("write", folder)
    return folder


@pytest.fixture(scope="module")
def merged(full: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One large file of the same messages, by processes that took no more than they may."""
    folder = tmp_path_factory.mktemp("merged") / "journal"
    shutil.copytree(full, folder)
    for what in ("seal", "merge"):
        messages, peak = done(what, folder)
        assert messages == COUNT
        assert peak < PEAK_MAX_BYTES, what
    return folder


@pytest.mark.parametrize("what", ["number", "blob", "body", "position", "history", "export"])
def test_a_merged_file_is_read_in_bounded_memory(merged: Path, what: str) -> None:
    messages, peak = done(what, merged)
    assert messages == COUNT
    assert peak < PEAK_MAX_BYTES


@pytest.mark.parametrize("what", ["number", "blob", "history"])
def test_segments_of_blocks_are_read_in_bounded_memory(full: Path, what: str) -> None:
    messages, peak = done(what, full)
    assert messages == COUNT
    assert peak < PEAK_MAX_BYTES


def test_row_groups_are_bounded_in_bytes(merged: Path) -> None:
    (segment,) = segments_of(merged, "weather")
    assert segment.path.parent.parent.name == f"date={DAY}"
    metadata = pq.read_metadata(segment.path)
    groups = [metadata.row_group(each) for each in range(metadata.num_row_groups)]
    in_a_group = GROUP_BYTES // BODY_BYTES
    assert max(group.num_rows for group in groups) == in_a_group
    assert max(group.total_byte_size for group in groups) <= GROUP_BYTES
    # No more groups than it takes, but for where a small file ended.
    assert len(groups) <= 2 * COUNT // SEGMENT_MESSAGES
