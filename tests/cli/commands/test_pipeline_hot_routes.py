"""What a job finds in the journal of one gateway changes what another one brings to lanes."""

import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession
from tests.journeys.running import WAIT_S, running

import weft

RunHere = Callable[..., subprocess.CompletedProcess[str]]

SERVICE = "weather"
HOT = "prices.fast"
FOUND = "_WEFT.PIPELINE.hot_routes"
BUSY = 500
DIRECT = 1 << 63
# Nothing here is busy enough by itself; a route that is not hot any more comes back soon.
SETTINGS = """
services = ["weather"]

[limits]
greeting_s = 60.0

[lanes]
messages_s = 100000.0
bytes_s = 100000000.0
idle_s = 0.5
"""
JOURNAL = """
[journal]
patterns = ["prices.>"]
"""


class Pair(NamedTuple):
    """The addresses of two gateways of one mesh; the first keeps what enters there."""

    london: str
    rome: str


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    kept = ("--name", "london", "--data", str(tmp_path / "data"))
    with (
        running(tmp_path / "london", SETTINGS + JOURNAL, options=kept) as london,
        running(
            tmp_path / "rome", SETTINGS, options=("--name", "rome", "--join", london.address)
        ) as rome,
        connected(london.address, "looking") as looking,
    ):
        eventually(lambda: gateways(looking, FOUND) == ["rome"])
        yield Pair(london.address, rome.address)


@contextmanager
def connected(address: str, name: str) -> Iterator[weft.Connection]:
    with weft.Connection(address, service=SERVICE, name=name) as connection:
        yield connection


@contextmanager
def now_and_then(connection: weft.Connection) -> Iterator[list[int]]:
    """Publish numbers, some twenty a second; those that were."""
    said: list[int] = []
    is_over = threading.Event()

    def publish() -> None:
        while not is_over.wait(0.05):
            connection.publish(HOT, b"%d" % len(said))
            said.append(len(said))

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield said
    finally:
        is_over.set()
        thread.join(WAIT_S)


def gateways(connection: weft.Connection, subject: str) -> list[str]:
    """The other gateways that want a subject."""
    answer = connection.send_request("_WEFT.ask.subscribers", {"subject": subject}, WAIT_S)
    return [each["name"] for each in answer["gateways"]]


def route(connection: weft.Connection, name: str) -> str:
    """How what a connection publishes goes, and why."""
    answer = connection.send_request("_WEFT.ask.routes", {"subject": HOT}, WAIT_S)
    [row] = [row for row in answer["routes"] if row["name"] == name]
    return f"{row['state']}: {row['reason']}"


def eventually(is_so: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < ends_s
        time.sleep(0.02)


@pytest.fixture
def find(run_here: RunHere, pair: Pair, spark: SparkSession) -> Callable[[int], None]:
    """Have the job look at what london has kept, and publish there what is to hold for so long."""
    assert spark.version

    def find_it(ttl_s: int) -> None:
        done = run_here(
            *("pipeline", "run", "hot_routes", "--gateway", pair.london, "--service", SERVICE),
            *("--set", "messages_s=50", "--set", f"ttl_s={ttl_s}", "--out", FOUND),
        )
        assert done.returncode == 0, done.stderr

    return find_it


@pytest.mark.req("SPK-5", "HUB-22")
def test_what_is_hot_at_one_gateway_goes_direct_at_another_for_as_long_as_the_job_says(
    pair: Pair, find: Callable[[int], None], run_here: RunHere
) -> None:
    heard: list[tuple[bool, int]] = []
    with (
        connected(pair.london, "busy") as busy,
        connected(pair.rome, "desk") as desk,
        connected(pair.rome, "calm") as calm,
    ):
        for _ in range(BUSY):
            busy.publish(HOT, b"0", acknowledge=True)
        desk.subscribe(HOT, lambda each: heard.append((each.sequence >= DIRECT, int(each.payload))))
        desk.flush()
        with now_and_then(calm) as said:
            eventually(lambda: len(heard) > 0)
            assert route(calm, "calm").startswith("relayed: below threshold: ")

            find(300)
            eventually(lambda: heard[-1][0])
            told = json.loads(
                run_here(
                    *("routes", HOT, "--gateway", pair.rome, "--service", SERVICE, "--json")
                ).stdout
            )
            [row] = told["routes"]
            assert (row["name"], row["state"], row["receivers"]) == ("calm", "direct", ["desk"])
            assert re.fullmatch(r"hot_routes: [\d,]+ messages/s across the mesh", row["reason"])

            find(1)
            eventually(lambda: route(calm, "calm").startswith("relayed: "))
            assert route(calm, "calm") == "relayed: rate fell"
        eventually(lambda: len(heard) == len(said))
    assert [number for _, number in heard] == said


@pytest.mark.req("SPK-5")
def test_any_job_may_find_that_a_subject_is_hot(
    pair: Pair, run_here: RunHere, spark: SparkSession
) -> None:
    assert spark.version
    text = (
        "SELECT 'weather' AS service, subject, 1e4 AS messages_s, 120 AS ttl_s"
        " FROM weather GROUP BY subject"
    )
    with connected(pair.london, "busy") as busy, connected(pair.rome, "calm") as calm:
        busy.publish(HOT, b"0", acknowledge=True)
        target = ("--gateway", pair.london, "--service", SERVICE)
        done = run_here("sql", text, *target, "--out", FOUND)
        assert done.returncode == 0, done.stderr
        calm.publish(HOT, b"0", acknowledge=True)
        with connected(pair.rome, "desk") as desk, now_and_then(calm):
            desk.subscribe(HOT, lambda _: None)
            reason = "hot_routes: 10,000 messages/s across the mesh"
            eventually(lambda: route(calm, "calm") == f"direct: {reason}")


@pytest.mark.req("SPK-5", "HUB-22")
def test_what_is_kept_stays_at_its_gateway_however_hot_the_job_finds_it(
    pair: Pair, find: Callable[[int], None]
) -> None:
    with connected(pair.london, "busy") as busy, connected(pair.london, "desk") as desk:
        desk.subscribe(HOT, lambda _: None)
        desk.flush()
        for _ in range(BUSY):
            busy.publish(HOT, b"0", acknowledge=True)
        find(300)
        with now_and_then(busy):
            eventually(lambda: route(busy, "busy") == "relayed: journaled")
