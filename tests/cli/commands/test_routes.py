import asyncio
import json
import subprocess
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

import weft

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., AbstractAsyncContextManager[asyncio.subprocess.Process]]


@pytest.mark.req("HUB-22")
def test_routes_are_shown_with_the_reason(gateway: str, run_here: Run) -> None:
    with weft.Connection(gateway, name="routes.1") as connection:
        connection.publish("routes.shown", "x", acknowledge=True)
        done = run_here("routes")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("routes\n")
    [row] = [row for row in done.stdout.splitlines() if row.startswith("routes.shown ")]
    assert " routes.1 " in row
    assert " relayed " in row
    assert " below threshold: " in row


def test_the_routes_to_one_subject_are_shown(gateway: str, run_here: Run) -> None:
    with weft.Connection(gateway, name="routes.2") as connection:
        for subject in ("routes.one", "routes.other"):
            connection.publish(subject, "x", acknowledge=True)
        values = json.loads(run_here("routes", "routes.one", "--json").stdout)
    [row] = values["routes"]
    assert (row["subject"], row["name"], row["state"]) == ("routes.one", "routes.2", "relayed")
    assert values["more"] == 0


def test_where_nothing_is_published_it_says_so(gateway: str, run_here: Run) -> None:
    with weft.Connection(gateway, service="routes-none"):
        done = run_here("routes", "--service", "routes-none")
    assert done.stdout == "nothing is published at the moment\n"


async def test_in_a_pipe_the_pictures_follow_each_other(gateway: str, started: Start) -> None:
    async with (
        weft.connect(gateway, service="routes-watched", name="routes.3") as connection,
        started("routes", "--watch", "--json", "--service", "routes-watched") as process,
    ):
        assert process.stdout is not None
        await connection.publish("routes.watched", b"x", acknowledge=True)
        while not (json.loads(await process.stdout.readline()))["routes"]:
            continue
