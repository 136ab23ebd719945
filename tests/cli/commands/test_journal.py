import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.journal.desk import batch_of, message, place_in, written

import weft

RunHere = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data of a gateway with 40 messages in two segments, one of them open."""
    root = tmp_path / "journal"
    written(place_in(root), 30).finish()
    open_segment = written(place_in(root), 9, first=30)
    open_segment.append(batch_of([message(39, b"alarms.a")], 39))
    open_segment.abandon()
    return tmp_path


def test_the_segments_are_listed(run_here: RunHere, data: Path) -> None:
    ended = run_here("journal", "ls", str(data))
    assert ended.returncode == 0
    lines = [line.split() for line in ended.stdout.splitlines()]
    assert lines[2][:5] == ["weather", "london", "full", "0", "29"]
    assert lines[3][:4] == ["weather", "london", "open", "30"]
    found = [
        json.loads(line)
        for line in run_here("journal", "ls", str(data), "--json").stdout.splitlines()
    ]
    assert [(each["first"], each["last"]) for each in found] == [(0, 29), (30, None)]


def test_an_empty_folder_has_no_segments(run_here: RunHere, tmp_path: Path) -> None:
    assert run_here("journal", "ls", str(tmp_path)).stdout == "the journal is empty\n"


def test_messages_are_printed_in_order(run_here: RunHere, data: Path) -> None:
    ended = run_here("journal", "cat", str(data), "--service", "weather")
    assert ended.returncode == 0
    lines = ended.stdout.splitlines()
    assert [int(line.split()[0]) for line in lines] == list(range(40))
    assert lines[0].endswith("sensors.a  body 0")


def test_what_is_printed_can_be_chosen(run_here: RunHere, data: Path) -> None:
    chosen = ("--service", "weather", "--json")
    few = run_here("journal", "cat", str(data), *chosen, "--from", "5", "--count", "2")
    found = [json.loads(line) for line in few.stdout.splitlines()]
    assert [(each["position"], each["sequence"], each["node"]) for each in found] == [
        (5, 5, "london"),
        (6, 6, "london"),
    ]
    alarms = run_here("journal", "cat", str(data), *chosen, "--subject", "alarms.*")
    assert [json.loads(line)["position"] for line in alarms.stdout.splitlines()] == [39]


def test_positions_are_those_of_a_node(run_here: RunHere, data: Path) -> None:
    written(place_in(data / "journal", node="paris"), 3).finish()
    chosen = ("journal", "cat", str(data), "--service", "weather")
    both = run_here(*chosen)
    assert len(both.stdout.splitlines()) == 43
    refused = run_here(*chosen, "--from", "1")
    assert refused.returncode == 2
    assert "give --node, london or paris" in refused.stderr
    assert len(run_here(*chosen, "--from", "1", "--node", "paris").stdout.splitlines()) == 2
    unknown = run_here(*chosen, "--node", "rome")
    assert unknown.returncode == 1
    assert "nothing of node rome" in unknown.stderr


def test_a_service_without_a_journal_is_named(run_here: RunHere, data: Path) -> None:
    ended = run_here("journal", "ls", str(data), "--service", "orders")
    assert ended.returncode == 1
    assert "no journal of 'orders'" in ended.stderr
    assert "only of weather" in ended.stderr


def test_a_whole_journal_is_said_to_be(run_here: RunHere, data: Path) -> None:
    ended = run_here("journal", "verify", str(data))
    assert (ended.returncode, ended.stdout) == (0, "")
    assert "40 messages in 2 segments are whole; 0 faults" in ended.stderr


def test_damage_is_told_with_its_place_and_what_it_costs(run_here: RunHere, data: Path) -> None:
    (full,) = data.glob("journal/*/_full-*")
    content = bytearray(full.read_bytes())
    content[len(content) // 2] ^= 4
    full.write_bytes(content)
    ended = run_here("journal", "verify", str(data))
    assert ended.returncode == 1
    assert f"{full}: bytes " in ended.stdout
    assert "positions 10 … 19 are lost" in ended.stdout
    told = [
        json.loads(line)
        for line in run_here("journal", "verify", str(data), "--json").stdout.splitlines()
    ]
    assert [(each["messages"], len(each["faults"])) for each in told] == [(20, 1), (10, 0)]
    read = run_here("journal", "cat", str(data), "--service", "weather")
    assert read.returncode == 1
    assert len(read.stdout.splitlines()) == 30
    assert "london: positions 10 … 19 are missing: _full" in read.stderr


def test_full_segments_are_sealed(run_here: RunHere, data: Path) -> None:
    ended = run_here("journal", "seal", str(data))
    assert ended.returncode == 0
    assert ": 30 messages, " in ended.stdout
    assert run_here("journal", "seal", str(data), "--json").stdout == ""
    listed = run_here("journal", "ls", str(data), "--json").stdout.splitlines()
    assert [json.loads(line)["state"] for line in listed] == ["sealed", "open"]
    shown = run_here("journal", "cat", str(data), "--service", "weather").stdout.splitlines()
    assert [int(line.split()[0]) for line in shown] == list(range(40))
    assert run_here("journal", "verify", str(data)).returncode == 0


def test_what_cannot_be_sealed_stays_and_is_told(run_here: RunHere, data: Path) -> None:
    (full,) = data.glob("journal/*/_full-*")
    full.write_bytes(b"damaged")
    ended = run_here("journal", "seal", str(data))
    assert ended.returncode == 1
    assert f"{full}: stays as it is: bytes 0 … 7" in ended.stdout
    (told,) = run_here("journal", "seal", str(data), "--json").stdout.splitlines()
    assert json.loads(told)["path"] == str(full)


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_messages_are_exported(run_here: RunHere, data: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    chosen = ("--service", "weather", "--from", "3", "--subject", "sensors.>")
    ended = run_here("journal", "export", str(data), str(out), *chosen)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert f"36 messages are in {out}" in ended.stderr
    if name.endswith("jsonl"):
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        rows = pq.read_table(out).to_pylist()
    assert [row["position"] for row in rows] == list(range(3, 39))
    assert not list(tmp_path.glob(".*"))


def test_an_export_says_by_its_name_what_it_is(run_here: RunHere, data: Path) -> None:
    ended = run_here("journal", "export", str(data), "out.csv", "--service", "weather")
    assert ended.returncode == 2
    assert "must end in .parquet or .jsonl" in ended.stderr


def test_an_export_that_fails_leaves_what_was_there(
    run_here: RunHere, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("before")
    ended = run_here("journal", "export", str(data), str(out), "--service", "none")
    assert ended.returncode == 1
    assert out.read_text() == "before"
    assert not list(tmp_path.glob(".*"))


def test_messages_are_published_again(run_here: RunHere, gateway: str, data: Path) -> None:
    with weft.Connection(gateway, service="weather") as connection:
        again = connection.subscribe("again.>")
        chosen = ("--service", "weather", "--from", "35", "--prefix", "again", "--speed", "0")
        ended = run_here("journal", "replay", str(data), *chosen, "--gateway", gateway)
        assert ended.returncode == 0
        assert f"5 messages were published to weather at {gateway}" in ended.stderr
        found = [again.next(20) for _ in range(5)]
    assert [(each.subject, each.payload) for each in found] == [
        *[("again.sensors.a", b"body %d" % number) for number in range(35, 39)],
        ("again.alarms.a", b"body 39"),
    ]


def test_without_its_packages_the_command_says_what_to_install(
    run_here: RunHere, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ended = run_here("journal", "ls", str(data))
    assert ended.returncode == 2
    assert 'pip install "weft-mesh[journal]"' in ended.stderr
