from pathlib import Path

from benchmarks.peers.brokers import PEERS
from benchmarks.peers.report import facts_of, machine, read, write
from benchmarks.peers.rows import ROWS
from tests.benchmarks.peers.reports import report


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    write(report(), tmp_path / "deep" / "report.json")
    assert read(tmp_path / "deep" / "report.json") == report()


def test_a_peer_tells_its_version() -> None:
    facts = PEERS["weft"].facts()
    assert facts.version[0].isdigit()
    assert facts.title == f"weft {facts.version}"


def test_a_row_is_kept_with_its_options() -> None:
    assert facts_of(ROWS["one-16"]).options["size"] == 16


def test_the_machine_is_told() -> None:
    assert {"processor", "cores", "kernel", "python", "gcc", "commit"} <= machine().keys()
