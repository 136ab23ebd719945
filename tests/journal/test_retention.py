import os
from pathlib import Path
from time import time

from tests.journal.desk import place_in, written

from weft.journal.retention import Keep, expire
from weft.journal.segment.file_names import segments_of


def made(root: Path) -> list[int]:
    """Three full segments and an open one; their sizes."""
    place = place_in(root)
    for first in (0, 20, 40):
        written(place, 20, first=first).finish()
    written(place, 20, first=60)
    return [each.path.stat().st_size for each in segments_of(root, "weather")]


def left(root: Path, keep: Keep) -> list[int]:
    removed = expire(root, "weather", "london", keep)
    assert not [each for each in removed if each.path.exists()]
    return [each.first for each in segments_of(root, "weather")]


def test_without_a_bound_everything_stays(tmp_path: Path) -> None:
    made(tmp_path)
    assert left(tmp_path, Keep()) == [0, 20, 40, 60]


def test_the_oldest_go_first_until_it_is_small_enough(tmp_path: Path) -> None:
    sizes = made(tmp_path)
    assert left(tmp_path, Keep(size_bytes=sum(sizes))) == [0, 20, 40, 60]
    assert left(tmp_path, Keep(size_bytes=sum(sizes) - 1)) == [20, 40, 60]
    assert left(tmp_path, Keep(size_bytes=sizes[2] + sizes[3])) == [40, 60]
    assert left(tmp_path, Keep(size_bytes=1)) == [60]


def test_the_old_go(tmp_path: Path) -> None:
    made(tmp_path)
    for age_s, segment in zip((300, 200, 100), segments_of(tmp_path, "weather"), strict=False):
        os.utime(segment.path, (time(), time() - age_s))
    assert left(tmp_path, Keep(age_s=250.0)) == [20, 40, 60]
    assert left(tmp_path, Keep(age_s=50.0)) == [60]


def test_other_nodes_are_left_alone(tmp_path: Path) -> None:
    written(place_in(tmp_path, node="paris"), 20).finish()
    made(tmp_path)
    expire(tmp_path, "weather", "london", Keep(size_bytes=1))
    assert [each.first for each in segments_of(tmp_path, "weather", "paris")] == [0]
