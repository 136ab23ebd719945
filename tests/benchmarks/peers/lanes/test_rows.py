import pytest
from benchmarks.peers.lanes.rows import ROWS
from benchmarks.peers.rows import METRICS, Row


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_every_metric_has_a_name_for_people(row: Row) -> None:
    assert set(row.metrics) <= METRICS.keys()
    assert row.charted in row.metrics
