import pytest
from tests.sharing import LONGEST, OF_SPARK


def test_all_that_needs_spark_is_one_share(request: pytest.FixtureRequest) -> None:
    needing = [
        item.nodeid
        for item in request.session.items
        if isinstance(item, pytest.Function) and "spark" in item.fixturenames
    ]
    assert [each for each in needing if not each.startswith(OF_SPARK)] == []


def test_what_takes_longest_is_there(pytestconfig: pytest.Config) -> None:
    files = [share for share in LONGEST if share != "spark"]
    assert [each for each in files if not (pytestconfig.rootpath / each).is_file()] == []
    assert [each for each in OF_SPARK if not any(pytestconfig.rootpath.glob(f"{each}*"))] == []
