import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.journal.desk import message, place_in, written

from weft.journal.parquet import compact as module
from weft.journal.parquet.compact import Merged, NotMerged, merge_day
from weft.journal.parquet.schema import SCHEMA
from weft.journal.parquet.seal import seal_all
from weft.journal.read.arrow_batches import Range, batches_in
from weft.journal.read.history_pages import JournalPages
from weft.journal.read.messages import history
from weft.journal.read.record import JournalRecord
from weft.journal.read.sources import FolderShelf
from weft.journal.segment.file_names import segments_of
from weft.journal.segment.tail import Tails
from weft.journal.segment.verify import check_segment

DAY = "2023-11-14"
TIME_NS = 1_700_000_000_000_000_000
COUNT = 50
SCRIPT = Path(__file__).with_name("merging_until.py")
LARGE = 1 << 20


def sealed_in_pieces(root: Path, *firsts: int, size: int = 10) -> None:
    """Sealed segments of ten messages each, that begin with these positions."""
    for first in firsts:
        written(place_in(root), size, first).finish()
    list(seal_all(root, "weather", "london"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Fifty messages in five small segments."""
    folder = tmp_path / "journal"
    sealed_in_pieces(folder, 0, 10, 20, 30, 40)
    return folder


def merged(root: Path, target_bytes: int = LARGE) -> list[Merged | NotMerged]:
    return list(merge_day(place_in(root), DAY, target_bytes))


def names(root: Path) -> list[str]:
    return [each.path.name[:41] for each in segments_of(root, "weather", "london")]


def name(first: int, last: int) -> str:
    return f"{first:020}-{last:020}"


def assert_all_is_readable(root: Path, count: int = COUNT) -> None:
    """Every way to read finds every message, once and in order."""
    kept = list(history(root, "weather", "london"))
    expected = [JournalRecord(number, message(number)) for number in range(count)]
    assert kept == expected
    assert list(history(root, "weather", "london", 17, 33)) == expected[17:34]
    place = Range(FolderShelf(root, "weather"), "london", 0, count)
    batches = list(batches_in(place, (b">",), may_lack=False))
    assert [each for batch in batches for each in batch.column("position").to_pylist()] == list(
        range(count)
    )
    tails = Tails(root, "weather")
    assert (tails.starts(), tails.ends()) == ({"london": 0}, {"london": count})
    pages = JournalPages(root, "weather", "london")
    assert [pages.position_at(TIME_NS + each) for each in (0, 17, 49)] == [0, 17, 49]
    assert [check_segment(each).faults for each in segments_of(root, "weather")] == [
        [] for _ in segments_of(root, "weather")
    ]


def test_small_segments_become_one_that_holds_the_same(root: Path) -> None:
    (made,) = merged(root)
    assert isinstance(made, Merged)
    assert (made.segments, made.messages, made.size) == (5, COUNT, made.path.stat().st_size)
    assert names(root) == [name(0, 49)]
    assert_all_is_readable(root)
    table = pq.read_table(made.path)
    assert table.schema.equals(SCHEMA)
    assert table["position"].to_pylist() == list(range(COUNT))
    assert merged(root) == []


def test_its_age_is_that_of_its_last_messages(root: Path) -> None:
    for age, each in enumerate(segments_of(root, "weather")):
        os.utime(each.path, (1000 + age, 1000 + age))
    (made,) = merged(root)
    assert made.path.stat().st_mtime == 1004


def test_none_becomes_larger_than_it_should(root: Path) -> None:
    sizes = [each.path.stat().st_size for each in segments_of(root, "weather")]
    made = merged(root, 2 * max(sizes) + 2)
    assert [each.segments for each in made if isinstance(each, Merged)] == [2, 2]
    assert names(root) == [name(0, 19), name(20, 39), name(40, 49)]
    assert_all_is_readable(root)


def test_large_ones_stay_as_they_are(root: Path) -> None:
    size = min(each.path.stat().st_size for each in segments_of(root, "weather"))
    assert merged(root, 2 * size) == []
    assert len(names(root)) == 5


def test_groups_of_rows_are_put_together(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GROUP_ROWS", 20)
    (made,) = merged(root)
    metadata = pq.read_metadata(made.path)
    assert [metadata.row_group(each).num_rows for each in range(3)] == [20, 20, 10]
    assert_all_is_readable(root)


def test_a_hole_stays_a_hole(tmp_path: Path) -> None:
    sealed_in_pieces(tmp_path, 0, 10, 30, 40)
    assert len(merged(tmp_path)) == 2
    assert names(tmp_path) == [name(0, 19), name(30, 49)]


def test_what_is_not_sealed_yet_is_left_alone(root: Path) -> None:
    written(place_in(root), 10, 40).finish()
    open_segment = written(place_in(root), 5, 50)
    (made,) = merged(root)
    open_segment.abandon()
    assert isinstance(made, Merged)
    assert names(root)[0] == name(0, 39)
    assert len(names(root)) == 4


def test_a_damaged_segment_stays_and_is_told(root: Path) -> None:
    damaged = segments_of(root, "weather")[2].path
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 4
    damaged.write_bytes(content)
    made = merged(root)
    assert [each for each in made if isinstance(each, NotMerged)] == [
        NotMerged(damaged, made[0].why if isinstance(made[0], NotMerged) else "")
    ]
    assert "its checksum is" in str(made[0])
    assert damaged.exists()
    assert names(root) == [name(0, 19), name(20, 29), name(30, 49)]


@pytest.mark.req("SPK-4")
def test_wherever_it_is_killed_every_message_is_there(root: Path, tmp_path: Path) -> None:
    deaths = 0
    while True:
        copy = tmp_path / f"copy-{deaths}"
        shutil.copytree(root, copy)
        command = [sys.executable, str(SCRIPT), str(copy), DAY, str(deaths)]
        code = subprocess.run(command, check=False, timeout=60).returncode  # noqa: S603  # ours
        assert_all_is_readable(copy)
        made = merged(copy)
        assert names(copy) == [name(0, 49)]
        assert_all_is_readable(copy)
        assert not [each for each in copy.rglob("*.parquet") if each.name.startswith("_")]
        if code == 0:
            assert made == []
            break
        assert code == 9
        deaths += 1
    # The lock, the new file, what a crash left, the sync, the rename, and five that are removed.
    assert deaths == 10


def test_what_is_in_a_large_one_with_other_messages_is_not_removed(root: Path) -> None:
    small = segments_of(root, "weather")[3].path
    kept = small.read_bytes()
    merged(root)
    other = segments_of(root, "weather")[0].path.parent / f"{name(30, 38)}-00000000.parquet"
    other.write_bytes(kept)
    (made,) = merged(root)
    assert isinstance(made, NotMerged)
    assert (made.path, other.exists()) == (other, True)
    assert "has other messages there" in made.why


def test_what_was_being_written_at_a_crash_is_written_anew(root: Path) -> None:
    folder = segments_of(root, "weather")[0].path.parent
    (folder / "_merging.parquet").write_bytes(b"half of it")
    assert len(merged(root)) == 1
    assert sorted(each.name[0] for each in folder.iterdir()) == ["0", "_"]


def test_only_one_works_on_a_folder(root: Path) -> None:
    folder = segments_of(root, "weather")[0].path.parent
    with (folder / "_merging.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert merged(root) == [NotMerged(folder, "another process is merging it")]
    assert len(merged(root)) == 1
