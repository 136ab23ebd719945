import asyncio
import json
import signal
import subprocess
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., AbstractAsyncContextManager[asyncio.subprocess.Process]]

BRIEFLY = ("bench", "--seconds", "0.1", "--fan-out", "2")


@pytest.mark.usefixtures("gateway")
def test_three_measurements_are_three_lines(run_here: Run) -> None:
    done = run_here(*BRIEFLY)
    assert (done.returncode, done.stderr) == (0, "")
    one, many, request = done.stdout.splitlines()
    assert one.startswith("one to one ")
    assert "messages of 100 B" in one
    assert many.startswith("one to 2 ")
    assert "deliveries" in many
    assert request.startswith("request and reply ")
    assert all(part in request for part in ("p50 ", "p99 ", "p99.9 ", "longest "))


@pytest.mark.usefixtures("gateway")
def test_json_has_exact_numbers(run_here: Run) -> None:
    values = json.loads(run_here(*BRIEFLY, "--json", "--size", "7").stdout)
    assert list(values) == ["one", "fan-out", "request"]
    assert values["fan-out"]["readers"] == 2
    assert values["one"]["size"] == values["request"]["size"] == 7
    assert values["one"]["messages_per_s"] > 0
    assert values["request"]["p50_s"] > 0


@pytest.mark.usefixtures("gateway")
def test_one_measurement_can_be_taken_alone(run_here: Run) -> None:
    assert list(json.loads(run_here(*BRIEFLY, "--json", "--only", "one").stdout)) == ["one"]


@pytest.mark.usefixtures("gateway")
async def test_an_interrupt_ends_it_and_all_that_it_started(started: Start) -> None:
    async with started("bench", "--seconds", "1000", "--only", "one") as process:
        assert process.pid
        children = f"/proc/{process.pid}/task/{process.pid}/children"
        while not (pids := await asyncio.to_thread(_words_of, children)):
            await asyncio.sleep(0)
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
        assert process.returncode == 130
        assert b"Traceback" not in err
        assert not any(_is_alive(pid) for pid in pids)


def test_no_gateway_is_a_failure(run_here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_GATEWAY", "127.0.0.1:1")
    done = run_here(*BRIEFLY)
    assert done.returncode == 1
    assert done.stderr.startswith("weft: unreachable: ")
    assert done.stderr.count("\n") == 1


def _words_of(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:  # noqa: PTH123  # a file of the kernel
        return file.read().split()


def _is_alive(pid: str) -> bool:
    try:
        return _words_of(f"/proc/{pid}/stat")[2] != "Z"
    except FileNotFoundError:
        return False
