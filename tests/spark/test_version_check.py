from importlib.metadata import PackageNotFoundError

import pytest

import weft.spark
from weft.cli.options.spark import check_installed
from weft.errors import BadOption
from weft.spark import version_check as module
from weft.spark.version_check import check_pyspark


@pytest.mark.parametrize("found", ["4.2.0", "4.10.1", "5.0", "4.3.0.dev0", "unknown"])
def test_a_pyspark_that_streams_is_taken(monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    monkeypatch.setattr(module, "version", lambda _: found)
    check_pyspark()


@pytest.mark.parametrize("found", ["4.1.4", "4.0.5", "3.5.6"])
def test_an_older_one_is_named_wherever_weft_is_used(
    monkeypatch: pytest.MonkeyPatch, found: str
) -> None:
    monkeypatch.setattr(module, "version", lambda _: found)
    for begin in (check_pyspark, check_installed, weft.spark.session):
        with pytest.raises(BadOption, match=rf"PySpark {found} is too old: 4\.2 or later"):
            begin()


def test_a_missing_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(module, "version", missing)
    with pytest.raises(BadOption, match=r"this needs PySpark 4\.2 or later: pip install"):
        check_pyspark()
