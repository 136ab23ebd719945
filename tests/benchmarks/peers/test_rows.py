import pytest
from benchmarks.peers.rows import METRICS, ROWS, Row


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_every_metric_has_a_name_for_people(row: Row) -> None:
    assert set(row.metrics) <= METRICS.keys()
    assert row.charted in row.metrics


def test_a_peer_may_have_a_window_of_its_own() -> None:
    row = ROWS["patterns"]
    assert row.options_for("redis")["window"] < row.options_for("weft")["window"]
    assert row.options_for("weft") == row.options
