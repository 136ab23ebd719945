import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pyspark.sql import Row, SparkSession

from weft.cli.output import spark_rows
from weft.cli.output.spark_rows import first_of, plain, print_json, show, show_rows


def test_values_are_plain_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    row = Row(
        when=datetime(2026, 11, 16, 9, 30, tzinfo=UTC),
        day=date(2026, 11, 16),
        body=bytearray(b"\xff\x00"),
        price=Decimal("1.50"),
        inner=Row(names=["a", "b"], none=None),
        count=7,
    )
    assert print_json([row, row]) == 2
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert json.loads(first) == {
        "when": "2026-11-16T09:30:00Z",
        "day": "2026-11-16",
        "body": "/wA=",
        "price": "1.50",
        "inner": {"names": ["a", "b"], "none": None},
        "count": 7,
    }


def test_a_moment_without_a_zone_is_of_this_machine() -> None:
    local = datetime(2026, 11, 16, 9, 30, tzinfo=UTC).astimezone().replace(tzinfo=None)
    assert plain(local) == "2026-11-16T09:30:00Z"


def test_values_are_short_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = [("name", "string"), ("count", "bigint"), ("rate", "double"), ("more", "array<string>")]
    rows = [
        ("a\tb", 1234567, 0.123456789, ["x"]),
        ("long" * 50, None, 2.0, None),
        (bytearray(b"\xff!"), 1, 2.0, True),
    ]
    show_rows("numbers", kinds, rows)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "numbers"
    assert lines[1].split() == ["name", "count", "rate", "more"]
    assert lines[2].split() == ["a\\tb", "1,234,567", "0.123457", '["x"]']
    assert lines[3].split() == ["long" * 25 + "…", "2"]
    assert lines[4].split() == ["\\xff!", "1", "2", "True"]


def test_of_many_rows_the_first_are_shown(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_rows, "SHOWN_MAX", 3)
    kinds = [("id", "bigint")]
    assert show("ids", kinds, first_of(spark.range(3))) == 3
    assert capsys.readouterr().err == ""
    assert show("ids", kinds, first_of(spark.range(10))) == 4
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 5
    assert "more than 3 rows: --json or --out gives all" in shown.err
