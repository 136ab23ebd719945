import pytest

from weft.cli.output import status_tables, streams
from weft.cli.query import ConnectionRow, FlowRow, ServiceRow, ServiceTotals


def test_services_are_listed_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    totals = ServiceTotals(
        connections=12,
        subscriptions=3400,
        messages_in=5_600_000,
        message_rate=1_240_000.0,
        byte_rate=99_000_000.0,
        dropped={"slow": 1, "old": 2},
        slow_readers=1,
        backlog_bytes=8_000_000,
    )
    rows = {
        "weather": ServiceRow(state="up", pid=11, restarts=2, status=totals),
        "broken\x1b": ServiceRow(state="starting", restarts=1000),
    }
    streams.show(status_tables.services(rows))
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["broken\\x1b", "starting", "1,000"]
    assert lines[3].split("  ")[0] == "weather"
    for part in ("12", "3,400", "5.6 M", "1.2 M/s", "99 MB/s", " 3 ", "8 MB"):
        assert part in lines[3]


def test_a_connection_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    row = ConnectionRow(
        number=7,
        name="me.1",
        address="127.0.0.1:5",
        client="weft-python",
        subscriptions=2,
        messages=1500,
        message_rate=20.0,
        byte_rate=2000.0,
        owed_bytes=10,
        dropped=3,
    )
    streams.show(status_tables.connections("connections", [row]))
    title, head, line = capsys.readouterr().out.splitlines()
    assert title == "connections"
    assert head.split()[:3] == ["number", "name", "address"]
    assert " ".join(line.split()) == "7 me.1 127.0.0.1:5 weft-python 2 1.5 k 20/s 2 kB/s 10 B 3"


def test_a_subject_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    row = FlowRow(subject="a.b", messages=10, bytes=1000, message_rate=2.5, byte_rate=250.0)
    streams.show(status_tables.subjects("subjects", [row]))
    line = capsys.readouterr().out.splitlines()[2]
    assert " ".join(line.split()) == "a.b 2.5/s 250 B/s 10 1 kB"
