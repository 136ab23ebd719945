import pytest
from benchmarks.peers.brokers import PEERS, Peer
from benchmarks.peers.rounds import plan, run
from benchmarks.peers.rows import ROWS, Row
from benchmarks.running import Failed

ONE, OTHER = ROWS["one-16"], ROWS["fan-100"]
WEFT = PEERS["weft"]


def test_another_peer_begins_each_round() -> None:
    peers = list(PEERS.values())
    begins = [peer for _, _, peer in plan([ONE], peers, len(peers))][:: len(peers)]
    assert begins == peers


def test_a_round_has_every_row_with_every_peer() -> None:
    peers = list(PEERS.values())
    pairs = {(row.name, peer.name) for _, row, peer in plan([ONE, OTHER], peers, 1)}
    assert pairs == {(row.name, peer) for row in (ONE, OTHER) for peer in PEERS}


def test_what_fails_is_reported_and_the_run_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    def measure(row: Row, _peer: Peer) -> dict[str, float]:
        if row is ONE:
            raise Failed("a reader was cut")
        return {"per_s": 2.0, "cpu_us": 1.0, "own_percent": 50.0}

    report = run([ONE, OTHER], [WEFT], 2, measure)
    assert [each.failure for each in report.measurements] == ["a reader was cut", ""] * 2
    assert report.spreads[OTHER.name]["weft"]["per_s"].median == 2.0
    assert capsys.readouterr().out == ""
