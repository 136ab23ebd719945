import subprocess
import sys
from pathlib import Path

from tests.journal.desk import place_in, written

from weft.journal.maintenance import tidied
from weft.journal.retention import Keep
from weft.journal.segment.file_names import segments_of


def states(root: Path) -> list[tuple[str, int]]:
    return [(each.state, each.first) for each in segments_of(root, "weather")]


def test_what_is_full_is_sealed_and_what_is_too_much_removed(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    written(place, 20).finish()
    written(place, 20, first=20).finish()
    written(place, 5, first=40)
    first, second, *removed = tidied(place_in(tmp_path), Keep(1), seals=True)
    assert first.startswith("sealed 20 messages as 00000000000000000000-00000000000000000019-")
    assert second.startswith("sealed 20 messages as 00000000000000000020")
    assert [line.split()[0] for line in removed] == ["removed", "removed"]
    assert states(tmp_path) == [("open", 40)]


def test_sealing_can_be_left_out(tmp_path: Path) -> None:
    written(place_in(tmp_path), 20).finish()
    assert list(tidied(place_in(tmp_path), Keep(), seals=False)) == []
    assert states(tmp_path) == [("full", 0)]


def test_what_cannot_be_sealed_is_told(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    written(place, 20).finish()
    place.full(0, 19).write_bytes(b"nothing of the kind")
    (line,) = tidied(place_in(tmp_path), Keep(), seals=True)
    assert line.startswith(f"cannot seal {place.full(0, 19)}: bytes 0 … 19")


def test_it_is_a_command(tmp_path: Path) -> None:
    written(place_in(tmp_path), 20).finish()
    command = [sys.executable, "-m", "weft.journal.maintenance", str(tmp_path), "weather", "london"]
    ended = subprocess.run(  # noqa: S603  # ours
        [*command, "parquet", "0", "0.0", "days", "0.0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ended.stdout.startswith("sealed 20 messages")
    assert states(tmp_path) == [("sealed", 0)]
