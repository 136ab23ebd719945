import pytest

from weft.journal.read.arrow_batches import Lost
from weft.journal.segment.tail import Extent
from weft.spark.offsets import Offset, RowShares, offset_of, resumed

STORED = {"london": 10, "paris": 5, "@journals": {"london": "a"}}


def test_an_offset_is_what_was_stored() -> None:
    offset = offset_of(STORED)
    assert offset == Offset({"london": 10, "paris": 5}, {"london": "a"})
    assert offset.as_json() == STORED


def test_an_offset_from_before_journals_had_ids_is_still_one() -> None:
    assert offset_of({"london": 10}) == Offset({"london": 10}, {})
    assert offset_of({"london": 10}).as_json() == {"london": 10}


@pytest.mark.parametrize("ids", [{"london": "a"}, {}, {"london": "a", "paris": "new"}])
def test_reading_goes_on_in_the_same_journal(ids: dict[str, str]) -> None:
    extent = Extent(
        {"london": 2, "paris": 0, "rome": 7}, {"london": 20, "paris": 9, "rome": 9}, ids
    )
    begin = resumed(offset_of(STORED), extent, may_lack=False)
    assert begin == {"london": 10, "paris": 5, "rome": 7}


def test_a_journal_that_was_begun_again_is_lost_or_read_from_its_beginning() -> None:
    extent = Extent({"london": 2}, {"london": 20}, {"london": "b"})
    with pytest.raises(Lost, match=r"node london was begun again: it has the id b, .* position 10"):
        resumed(offset_of(STORED), extent, may_lack=False)
    assert resumed(offset_of(STORED), extent, may_lack=True) == {"london": 2}


@pytest.mark.parametrize(
    ("backlogs", "rows"),
    [
        ({"a": 76_000, "b": 4000}, 8000),
        ({"a": 900, "b": 90, "c": 9}, 10),
        ({"a": 100_000, "b": 3}, 100),
        ({"a": 5, "b": 5, "c": 5}, 1),
        ({"a": 7, "b": 0}, 3),
    ],
)
def test_backlogs_are_used_up_together(backlogs: dict[str, int], rows: int) -> None:
    shares = RowShares()
    waiting = dict(backlogs)
    total = sum(backlogs.values())
    while any(waiting.values()):
        split = shares.split(waiting, rows)
        assert sum(split.values()) == min(rows, sum(waiting.values()))
        waiting = {node: count - split[node] for node, count in waiting.items()}
        done = 1 - sum(waiting.values()) / total
        for node, count in backlogs.items():
            # Of every backlog the same part is read, to within two rows.
            assert abs((count - waiting[node]) - done * count) <= 2
    assert shares.split(waiting, rows) == dict.fromkeys(backlogs, 0)
