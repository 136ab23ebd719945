import pytest
from benchmarks.peers.kept.keepers import KEEPERS
from benchmarks.peers.kept.rows import ROWS
from benchmarks.peers.rounds import plan
from benchmarks.peers.rows import METRICS, Row


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_every_metric_has_a_name_for_people(row: Row) -> None:
    assert set(row.metrics) <= METRICS.keys()
    assert row.charted in row.metrics


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_only_known_peers_are_left_out(row: Row) -> None:
    assert row.left_out <= KEEPERS.keys()


def test_a_peer_that_is_left_out_is_not_measured() -> None:
    planned = plan([ROWS["delivered"]], list(KEEPERS.values()), 2)
    measured = {peer.name for _, _, peer in planned}
    assert measured == KEEPERS.keys() - ROWS["delivered"].left_out
