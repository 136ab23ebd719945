"""The tally of `make exactly-once`: what is lost, doubled or wrong must show."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.journal.desk import batch_of, place_in
from tools.exactly_once.source import END, FIRST, STEP
from tools.exactly_once.tally import Tally, tally

from weft.journal.segment.writer import OpenSegment
from weft.wire.frames import Kind, encode
from weft.wire.message.message import Message

READ = [("in.x", Message(n=number, at=FIRST + number * STEP)) for number in range(7000)]
READ.append(("in.end", Message(n=0, at=END)))
COPIES = [
    ("out.copy", Message(node="london", position=position, n=message["n"]))
    for position, (_, message) in enumerate(READ)
]


def windows() -> list[tuple[str, Message]]:
    found = []
    for start in (0, 6000):
        for key in range(10):
            numbers = [n for n in range(start, min(start + 6000, 7000)) if n % 10 == key]
            about = {"start": FIRST + start * STEP, "key": key}
            row = Message.from_dict({**about, "rows": len(numbers), "total": sum(numbers)})
            found.append(("out.windows", row))
    return found


def tallied(folder: Path, query: str, written: list[tuple[str, Message]]) -> Tally:
    place = place_in(folder, service="default")
    segment = OpenSegment(place, 0)
    frames = [
        encode(Kind.MESSAGE, subject.encode(), body.encode()) for subject, body in READ + written
    ]
    segment.append(batch_of(frames, 0, 100))
    segment.finish()
    gateway: Any = SimpleNamespace(place=place, node="london")
    return tally(query, [gateway], gateway)


@pytest.mark.parametrize(("query", "written"), [("copy", COPIES), ("windows", windows())])
def test_what_was_written_once_is_right(
    tmp_path: Path, query: str, written: list[tuple[str, Message]]
) -> None:
    found = tallied(tmp_path, query, written)
    assert found.is_right
    assert (found.read, found.expected, found.written) == (7001, len(written), len(written))


@pytest.mark.parametrize(("query", "written"), [("copy", COPIES), ("windows", windows())])
def test_what_is_lost_doubled_or_wrong_shows(
    tmp_path: Path, query: str, written: list[tuple[str, Message]]
) -> None:
    row = written[5][1].to_dict()
    other = Message.from_dict({**row, list(row)[-1]: -1})
    changed = [*written[1:5], written[3], (written[5][0], other), *written[6:]]
    found = tallied(tmp_path, query, changed)
    assert not found.is_right
    assert (len(found.lost), len(found.doubled), len(found.wrong)) == (2, 1, 1)
