from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from weft.cli.options.spark import SparkOptions, check_installed, moment
from weft.errors import BadOption, BadSubject
from weft.pipeline.sink import Folder, StreamPlan, Subject

NOTHING: dict[str, Any] = {
    "path": None,
    "gateways": None,
    "gateway": "127.0.0.1:7411",
    "tls_ca": None,
    "key_file": None,
    "service": "default",
    "since": None,
    "is_stream": False,
    "trigger": "1s",
    "checkpoint": "",
    "out": None,
    "master": None,
    "is_json": False,
}


def asked(**options: Any) -> SparkOptions:
    return SparkOptions(**{**NOTHING, **options})


def test_without_a_folder_a_gateway_is_read(tmp_path: Path) -> None:
    assert asked().source().gateways == "127.0.0.1:7411"
    assert asked(gateways="a:1,b:1").source().gateways == "a:1,b:1"
    source = asked(path=tmp_path, service="weather").source("a.>")
    assert (source.path, source.gateways, source.service) == (tmp_path, None, "weather")
    assert source.subject == "a.>"
    assert asked(tls_ca="ca.pem").source().tls_ca == "ca.pem"
    assert asked(tls_ca="ca.pem", path=tmp_path).source().tls_ca is None


def test_a_result_goes_to_a_folder_or_to_a_subject(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    assert asked().destination() is None
    for out in ("a/b", "./a", "there", "a.parquet", "s3://a/b"):
        assert asked(out=out).destination() == Folder(out)
    to = asked(out="a.b", service="weather").destination()
    assert to == Subject("127.0.0.1:7411", "weather", "a.b")
    own = asked(out="a.b").destination(has_subjects=True)
    assert own == Subject("127.0.0.1:7411", "default", None)
    with pytest.raises(BadSubject):
        asked(out="a.>").destination()


@pytest.mark.parametrize(
    ("trigger", "seconds"), [("now", None), ("500ms", 0.5), ("10s", 10.0), ("1.5m", 90.0)]
)
def test_a_stream_works_so_often(trigger: str, seconds: float | None) -> None:
    assert asked(trigger=trigger).flow("append") == StreamPlan(seconds, "append", "")


def test_a_stream_that_cannot_be_is_told() -> None:
    with pytest.raises(BadOption, match="--trigger 'often' is not 'now'"):
        asked(trigger="often").flow("append")
    with pytest.raises(BadOption, match="needs --checkpoint"):
        asked(out="a.b").flow("append")


def test_a_moment_is_some_time_ago_or_a_date() -> None:
    assert moment(None) is None
    assert moment("2026-11-16T09:30Z") == datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
    local = moment("2026-11-16T09:30")
    assert local is not None
    assert local.tzinfo is not None
    before = datetime.now(UTC)
    found = moment("5m")
    assert found is not None
    assert before <= found + timedelta(minutes=5) <= datetime.now(UTC)
    with pytest.raises(BadOption, match="since 'yesterday' is not"):
        moment("yesterday")


def test_what_is_needed_is_here() -> None:
    check_installed()
