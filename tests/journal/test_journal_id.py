import json
import os
import shutil
from pathlib import Path

import pytest
from tests.journal.desk import place_in, written

from weft.journal.journal_id import JournalIdentity, identity_of, ids_in, keep_identity
from weft.journal.maintenance import tidied
from weft.journal.read.sources import FolderShelf
from weft.journal.retention import Keep
from weft.journal.segment.file_names import segments_of
from weft.journal.segment.recovery import recover


def test_a_journal_gets_an_id_when_it_begins_and_keeps_it(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    recover(place)
    begun = identity_of(place)
    assert begun is not None
    assert (len(begun.id), begun.next) == (32, 0)
    written(place, 25).abandon()
    recover(place)
    assert identity_of(place) == JournalIdentity(begun.id, 25)


def test_a_journal_begun_again_under_the_same_name_has_another_id(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    recover(place)
    first = ids_in(tmp_path, "weather")
    shutil.rmtree(tmp_path)
    recover(place_in(tmp_path))
    second = ids_in(tmp_path, "weather")
    assert list(first) == list(second) == ["london"]
    assert first != second


def test_readers_of_the_folder_see_the_id_of_every_node(tmp_path: Path) -> None:
    for node in ("london", "london.1", "paris"):
        recover(place_in(tmp_path, node=node))
    ids = FolderShelf(tmp_path, "weather").watch().ids()
    assert sorted(ids) == ["london", "london.1", "paris"]
    assert len(set(ids.values())) == 3
    assert ids_in(tmp_path, "weather", "london") == {"london": ids["london"]}
    assert ids_in(tmp_path, "nothing") == {}


def test_positions_go_on_when_every_segment_was_removed(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    recover(place)
    begun = ids_in(tmp_path, "weather")
    written(place, 20).finish()
    assert list(tidied(place_in(tmp_path), Keep(size_bytes=1), seals=False))
    assert segments_of(tmp_path, "weather") == []
    assert recover(place).position == 20
    assert ids_in(tmp_path, "weather") == begun


def test_positions_go_on_when_the_segments_were_deleted_by_hand(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    written(place, 20).abandon()
    recover(place)
    for segment in segments_of(tmp_path, "weather"):
        segment.path.unlink()
    assert recover(place).position == 20


def test_a_file_that_is_damaged_is_written_again_with_another_id(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    (path := place.folder / "_journal-london").write_bytes(b'{"id":')
    assert identity_of(place) is None
    assert ids_in(tmp_path, "weather") == {}
    assert keep_identity(place, 7) == 7
    assert json.loads(path.read_bytes())["next"] == 7


def test_an_id_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_in(tmp_path)

    def refuse(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space left"):
        keep_identity(place, 0)
    assert list(place.folder.iterdir()) == []
