"""Jobs and queries over what a running gateway keeps, and their results as messages."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.attacks.gateway_process import GatewayProcess

import weft

RunHere = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a gateway that keeps ten messages of the service weather."""
    folder = tmp_path_factory.mktemp("kept")
    settings = {
        "name": "london",
        "services": ["weather"],
        "data": str(folder / "data"),
        "journal.patterns": ["sensors.>"],
    }
    with GatewayProcess(folder, settings) as running:
        address = f"127.0.0.1:{running.port}"
        with weft.Connection(address, service="weather") as connection:
            for number in range(10):
                connection.publish(
                    f"sensors.{'ab'[number % 2]}", {"value": number / 2}, acknowledge=True
                )
        yield address


@pytest.fixture
def run(run_here: RunHere, kept: str, spark: SparkSession) -> RunHere:
    """Run a command against that gateway."""
    assert spark.version

    def run_it(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_here(*arguments, "--gateway", kept, "--service", "weather")

    return run_it


def test_a_gateway_that_is_not_there_is_told_at_once(run_here: RunHere) -> None:
    done = run_here("pipeline", "run", "rates", "--gateways", "127.0.0.1:1")
    assert done.returncode == 1
    assert done.stderr.startswith("weft: unreachable: ")


@pytest.mark.req("SPK-4")
def test_a_job_reads_a_gateway_and_publishes_to_it(run: RunHere, kept: str) -> None:
    with weft.Connection(kept, service="weather") as connection:
        results = connection.subscribe("results.rates")
        connection.flush()
        done = run("pipeline", "run", "rates", "--out", "results.rates", "--set", "window_s=3600")
        assert done.returncode == 0, done.stderr
        found = {row["subject"]: row for row in (results.next(30) for _ in range(2))}
    assert done.stderr == (f"weft: the result is published to results.rates of weather at {kept}\n")
    assert {subject: row["messages"] for subject, row in found.items()} == {
        "sensors.a": 5,
        "sensors.b": 5,
    }


def test_what_was_said_is_said_again_below_a_subject(run: RunHere, kept: str) -> None:
    with weft.Connection(kept, service="weather") as connection:
        again = connection.subscribe("again.>")
        connection.flush()
        done = run("pipeline", "run", "replay", "--out", "again", "--subject", "sensors.b")
        assert done.returncode == 0, done.stderr
        found = [again.next(30) for _ in range(5)]
    assert [each["value"] for each in found] == [0.5, 1.5, 2.5, 3.5, 4.5]
    assert {each.subject for each in found} == {"again.sensors.b"}


def test_a_query_sees_the_services_of_a_gateway(run: RunHere) -> None:
    done = run("sql", "SELECT max(value) AS v FROM weather", "--fields", "value double", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"v": 4.5}
    wrong = run("sql", "SELECT * FROM wether")
    assert wrong.returncode == 1
    assert "there is no service 'wether'; did you mean 'weather'?" in wrong.stderr


def test_a_stream_of_a_query_is_published(run: RunHere, kept: str, tmp_path: Path) -> None:
    text = "SELECT concat('warm.', subject) AS place, value FROM weather WHERE value > 4"
    stream = ("--stream", "--trigger", "now", "--since", "1h", "--fields", "value double")
    to = ("--out", "alarms", "--checkpoint", str(tmp_path / "kept"))
    with weft.Connection(kept, service="weather") as connection:
        alarms = connection.subscribe("alarms")
        connection.flush()
        for _ in range(2):
            done = run("sql", text, *stream, *to)
            assert done.returncode == 0, done.stderr
        connection.publish("alarms", {"value": -1.0})
        found = [alarms.next(30) for _ in range(2)]
    # The second run had nothing more to publish.
    assert [(each["value"], each.get("place")) for each in found] == [
        *((4.5, "warm.sensors.b"), (-1.0, None))
    ]
