from pathlib import Path

import pytest

from weft.errors import BadOption
from weft.journal.read.sources import FolderShelf
from weft.spark.columns import Mode, Parsing
from weft.spark.options import ReadOptions, read_options


def options(folder: Path, **given: str) -> ReadOptions:
    return read_options({"path": str(folder), **given})


def test_what_is_not_given_has_a_default(tmp_path: Path) -> None:
    assert options(tmp_path) == ReadOptions(
        shelf=FolderShelf(tmp_path, "default"),
        patterns=(b">",),
        starting=None,
        starting_ns=None,
        ending="latest",
        max_rows=None,
        min_partitions=None,
        may_lack=False,
        parsing=Parsing(Mode.PERMISSIVE, "_corrupt_record", frozenset()),
    )


def test_names_are_spelled_in_any_case_as_spark_has_it(tmp_path: Path) -> None:
    found = read_options(
        {
            "PATH": f"file://{tmp_path}",
            "STARTINGOFFSETS": '{"a": 1}',
            "maxoffsetspertrigger": "7",
            "minPartitions": "3",
            "FailOnDataLoss": "False",
            "subscribe": "a.*, b",
        }
    )
    assert (found.shelf, found.starting, found.max_rows) == (
        FolderShelf(tmp_path, "default"),
        {"a": 1},
        7,
    )
    assert (found.min_partitions, found.may_lack) == (3, True)
    assert found.patterns == (b"a.*", b"b")


def test_the_data_of_a_gateway_has_its_journal_below(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    assert options(tmp_path).shelf == FolderShelf(tmp_path / "journal", "default")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2023-11-14T22:13:20Z", 0), ("2023-11-14T22:13:21", 1), ("2023-11-14T23:13:20+01:00", 0)],
)
def test_a_time_may_have_a_zone(tmp_path: Path, text: str, seconds: int) -> None:
    found = options(tmp_path, startingTimestamp=text)
    assert found.starting_ns == (1_700_000_000 + seconds) * 1_000_000_000


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"startingOffset": "0"}, "no option 'startingOffset'; did you mean 'startingOffsets'?"),
        ({"qqqq": "1"}, "no option 'qqqq', only path, gateways"),
        ({"path": "/nowhere/at/all"}, "'/nowhere/at/all' is not a folder"),
        ({"service": "a/b"}, "service 'a/b' is not a valid"),
        ({"subscribe": "a..b"}, "subscribe: 'a..b' is not a legal subject"),
        ({"startingOffsets": "{}x"}, "startingOffsets '{}x' is not"),
        ({"startingOffsets": '{"a": -1}'}, "is not 'earliest'"),
        ({"startingOffsets": '{"a": true}'}, "is not 'earliest'"),
        ({"startingOffsets": "[1]"}, "is not 'earliest'"),
        ({"startingTimestamp": "noon"}, "startingTimestamp 'noon' is not an ISO 8601 time"),
        ({"startingOffsets": "latest", "startingTimestamp": "2026-11-16"}, "not both"),
        ({"maxOffsetsPerTrigger": "0"}, "at least 1"),
        ({"minPartitions": "many"}, "minPartitions is 'many'"),
        ({"failOnDataLoss": "maybe"}, "must be true or false"),
        ({"mode": "LENIENT"}, "it must be PERMISSIVE, DROPMALFORMED, FAILFAST"),
        ({"columnNameOfCorruptRecord": "payload"}, "every message has that"),
    ],
)
def test_what_cannot_be_is_named(tmp_path: Path, given: dict[str, str], text: str) -> None:
    with pytest.raises(BadOption) as raised:
        read_options({"path": str(tmp_path), **given})
    assert text in str(raised.value)


def test_without_a_path_there_is_nothing_to_read() -> None:
    with pytest.raises(BadOption, match="needs the option path"):
        read_options({})
