from pathlib import Path

import pytest
from benchmarks.peers.__main__ import BROKERS
from benchmarks.peers.clients.__main__ import CLIENTS
from benchmarks.peers.command import main, read_arguments
from benchmarks.peers.kept.__main__ import KEPT
from benchmarks.peers.report import write
from benchmarks.peers.rows import ROWS
from tests.benchmarks.peers.reports import report


def test_every_row_is_measured_unless_some_are_named() -> None:
    assert [row.name for row in read_arguments(BROKERS, ["--list"]).rows] == list(ROWS)
    assert [row.name for row in read_arguments(BROKERS, ["--list", "pairs"]).rows] == ["pairs"]


def test_clients_have_rows_and_peers_of_their_own() -> None:
    options = read_arguments(CLIENTS, ["--list"])
    assert [row.name for row in options.rows] == ["bytes", "typed", "request"]
    assert "nats-py" in [peer.name for peer in options.peers]


def test_kept_messages_have_rows_and_peers_of_their_own() -> None:
    options = read_arguments(KEPT, ["--list"])
    assert [row.name for row in options.rows] == ["acknowledged", "one-at-a-time", "delivered"]
    assert {"weft", KEPT.reference} <= {peer.name for peer in options.peers}


def test_a_peer_that_is_named_twice_is_measured_once() -> None:
    assert [
        peer.name for peer in read_arguments(BROKERS, ["--list", "--peers", "weft,weft"]).peers
    ] == ["weft"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nonsense"], "no row 'nonsense'"),
        (["--peers", "weft,pigeon"], "no peer 'pigeon'"),
        (["--rounds", "0"], "0 rounds are too few"),
    ],
)
def test_what_makes_no_sense_is_refused(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        read_arguments(BROKERS, arguments)
    assert complaint in capsys.readouterr().err


def test_the_list_has_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(BROKERS, ["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(ROWS)


def test_what_was_kept_is_shown_without_measuring(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(report(), tmp_path / "kept.json")
    picture = tmp_path / "images" / "picture.svg"
    assert main(BROKERS, ["--from", str(tmp_path / "kept.json"), "--chart", str(picture)]) == 0
    assert "1→1 & more" in capsys.readouterr().out
    assert picture.read_text().startswith("<svg")
