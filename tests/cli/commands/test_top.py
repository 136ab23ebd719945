import asyncio
import json
import os
import pty
import signal
import subprocess
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

import weft
from weft.cli.commands.top import by_subject
from weft.cli.query import FlowRow, SubjectRow

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., AbstractAsyncContextManager[asyncio.subprocess.Process]]


def test_flows_of_one_subject_are_taken_together() -> None:
    flows = [
        FlowRow(connection=1, subject="a", messages=1, bytes=10, message_rate=2.0, byte_rate=20.0),
        FlowRow(connection=1, subject="b", messages=5, bytes=50, message_rate=9.0, byte_rate=90.0),
        FlowRow(connection=2, subject="a", messages=2, bytes=20, message_rate=3.0, byte_rate=30.0),
    ]
    assert by_subject(flows) == [
        SubjectRow(subject="b", messages=5, bytes=50, message_rate=9.0, byte_rate=90.0),
        SubjectRow(subject="a", messages=3, bytes=30, message_rate=5.0, byte_rate=50.0),
    ]


def test_one_picture_shows_subjects_and_connections(gateway: str, run_here: Run) -> None:
    with weft.Connection(gateway, name="busy.1") as connection:
        connection.publish("top.shown", "x", acknowledge=True)
        done = run_here("top", "--once", "--limit", "1000")
    assert (done.returncode, done.stderr) == (0, "")
    assert "subjects by rate" in done.stdout
    assert "top.shown" in done.stdout
    assert "busy.1" in done.stdout


def test_json_is_one_object(gateway: str, run_here: Run) -> None:
    with weft.Connection(gateway, name="busy.2") as connection:
        connection.publish("top.json", "x", acknowledge=True)
        values = json.loads(run_here("top", "--once", "--json", "--limit", "1000").stdout)
    assert values["service"] == "default"
    assert values["status"]["messages_in"] > 0
    assert "top.json" in {row["subject"] for row in values["subjects"]}
    assert "busy.2" in {row["name"] for row in values["connection_list"]}
    assert values["slow_reader_list"] == []


@pytest.mark.parametrize("name", [[], ["--name", "busy.3"]])
def test_whoever_looks_is_not_in_the_picture(gateway: str, run_here: Run, name: list[str]) -> None:
    with weft.Connection(gateway, service="top-alone", name="busy.3") as connection:
        done = run_here("top", "--once", "--json", "--service", "top-alone", *name)
        values = json.loads(done.stdout)
        assert values["status"]["connections"] == 1
        assert values["status"]["message_rate"] == values["status"]["byte_rate"] == 0
        assert [row["name"] for row in values["connection_list"]] == ["busy.3"]
        connection.publish("top.counted", "x", acknowledge=True)
        done = run_here("top", "--once", "--json", "--service", "top-alone", *name)
        [row] = json.loads(done.stdout)["connection_list"]
        assert json.loads(done.stdout)["status"]["message_rate"] == row["message_rate"] > 0


def test_where_nothing_goes_on_it_says_so(gateway: str, run_here: Run) -> None:
    with weft.Connection(gateway, service="top-quiet"):
        pass
    done = run_here("top", "--once", "--service", "top-quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1:] == [
        *("", "nothing is published at the moment", "", "no other connections", "")
    ]


@pytest.mark.usefixtures("gateway")
def test_a_service_is_not_started_by_looking_at_it(run_here: Run) -> None:
    done = run_here("top", "--once", "--service", "unheard-of")
    assert done.returncode == 1
    assert done.stderr.startswith("weft: no such service: ")


@pytest.mark.usefixtures("gateway")
async def test_pictures_follow_each_other_in_a_pipe(started: Start) -> None:
    async with started("top", "--json", "--interval", "0.1") as process:
        assert process.stdout is not None
        times = [json.loads(await process.stdout.readline())["time"] for _ in range(3)]
        assert times == sorted(set(times))
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
        assert process.returncode == 130
        assert b"Traceback" not in err


async def test_a_terminal_shows_a_live_view(gateway: str, started: Start) -> None:
    master, terminal = pty.openpty()
    async with started("top", "--interval", "0.1", stdout=terminal) as process:
        os.close(terminal)
        async with weft.connect(gateway, name="live.1") as connection:
            shown = ""
            while "top.live" not in shown or "live.1" not in shown:
                await connection.publish("top.live", "x")
                shown += (await asyncio.to_thread(os.read, master, 65_536)).decode()
        assert "subjects by rate" in shown
        process.send_signal(signal.SIGINT)
        # The terminal is given back as it was: from the other screen to the first.
        while "\x1b[?1049l" not in shown:
            shown += (await asyncio.to_thread(os.read, master, 65_536)).decode()
        assert await process.wait() == 130
    os.close(master)
