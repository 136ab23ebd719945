from pathlib import Path

from tests.journal.desk import place_in, written

from weft.journal.parquet.seal import seal_all
from weft.journal.segment.file_names import (
    JournalFolder,
    Segment,
    found_again,
    segment_at,
    segments_of,
    services_in,
)

TIME_NS = 1_763_286_000_000_000_000


def test_names_tell_what_is_in_the_files(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    sealed = place.sealed(0, 41, 0x5D2F0B1C, TIME_NS)
    sealed.parent.mkdir(parents=True)
    paths = [sealed, place.full(42, 99), place.open(100)]
    for path in paths:
        path.touch()
    assert segments_of(tmp_path, "weather") == [
        Segment(paths[0], "weather", "london", "sealed", 0, 41, 0x5D2F0B1C),
        Segment(paths[1], "weather", "london", "full", 42, 99),
        Segment(paths[2], "weather", "london", "open", 100, -1),
    ]
    assert sealed.parent.parent.name == "date=2025-11-16"


def test_nodes_with_dashes_and_dots_are_told_apart(tmp_path: Path) -> None:
    nodes = ["a", "a-1", "a.b", "1-2"]
    for node in nodes:
        place_in(tmp_path, node=node).open(5).touch()
    assert [each.node for each in segments_of(tmp_path, "weather")] == sorted(nodes)
    assert [each.node for each in segments_of(tmp_path, "weather", "a-1")] == ["a-1"]


def test_what_was_cut_off_is_found_by_its_segment(tmp_path: Path) -> None:
    place = place_in(tmp_path, node="a")
    paths = [place.torn(5, 1), place.torn(5, 2)]
    for path in [*paths, place.torn(6, 1), place_in(tmp_path, node="a-1").torn(5, 1)]:
        path.touch()
    assert place.torn_off(5) == paths


def test_files_of_others_are_left_out(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    place.lock.touch()
    place.torn(5, TIME_NS).touch()
    (place.folder / "notes.txt").touch()
    (place.folder / "_open-5-london.weft").touch()
    (place.folder / "date=2025-11-16").touch()
    (place.folder / "date=2025-11-17" / "other").mkdir(parents=True)
    (place.folder / "date=2025-11-17" / "node=a").mkdir(parents=True)
    (place.folder / "date=2025-11-17" / "node=a" / "part.parquet").touch()
    (tmp_path / "service=..").mkdir()
    (tmp_path / "service=file").touch()
    assert segments_of(tmp_path, "weather") == []
    assert services_in(tmp_path) == ["weather"]


def test_where_nothing_is_nothing_is_found(tmp_path: Path) -> None:
    assert services_in(tmp_path / "none") == []
    assert segments_of(tmp_path, "none") == []


def test_a_segment_is_found_by_its_name_alone(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    written(place, 20).finish()
    list(seal_all(tmp_path, "weather", "london"))
    written(place, 20, first=20).finish()
    written(place, 5, first=40)
    for segment in segments_of(tmp_path, "weather"):
        name = str(segment.path.relative_to(place.folder))
        assert segment_at(tmp_path, "weather", "london", name) == segment
        assert segment_at(tmp_path, "weather", "paris", name) is None
        assert segment_at(tmp_path, "weather", "london", f"./{name}") is None
        segment.path.unlink()
        assert segment_at(tmp_path, "weather", "london", name) is None


def test_a_segment_is_found_again_under_its_new_name(tmp_path: Path) -> None:
    place = JournalFolder(tmp_path, "weather", "london")
    place.folder.mkdir()
    place.open(5).touch()
    (before,) = segments_of(tmp_path, "weather")
    place.open(5).rename(place.full(5, 9))
    after = found_again(tmp_path, before)
    assert after is not None
    assert (after.state, after.first, after.last) == ("full", 5, 9)
    after.path.unlink()
    assert found_again(tmp_path, before) is None
