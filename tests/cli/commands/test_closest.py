"""`weft closest` against a gateway that runs."""

import asyncio
import json
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable

import pytest
from tests.client.servers import answered, http_server

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.req("RLY-16")
def test_the_gateway_that_is_asked_is_shown_with_its_round_trip(
    gateway: str, run_here: Run
) -> None:
    done = run_here("closest")
    assert (done.returncode, done.stderr) == (0, "")
    assert "gateways of default" in done.stdout
    assert gateway in done.stdout
    assert "tested" in done.stdout
    assert "no answer" not in done.stdout


def test_json_has_what_a_program_needs(gateway: str, run_here: Run) -> None:
    done = run_here("closest", "--region", "eu", "--limit", "1", "--json")
    [found] = json.loads(done.stdout)["candidates"]
    assert (found["name"], found["address"], found["region"]) == ("tested", gateway, "")
    assert found["round_trip_ms"] > 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--limit", "0"], "0 is not in the range 1<=x<=100"),
        (["--region", "a b"], "region 'a b' is not up to 63 letters"),
        (["--service", "a/b"], "service 'a/b' is not 1 to 63 letters"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    gateway: str, run_here: Run, options: list[str], text: str
) -> None:
    done = run_here("closest", *options)
    assert gateway
    assert done.returncode != 0
    assert text in done.stderr


@pytest.mark.parametrize("options", [[], ["--json"]])
async def test_a_service_without_a_gateway_is_a_failure(options: list[str]) -> None:
    async with http_server(lambda _: answered('{"candidates": []}')) as server:
        address = f"127.0.0.1:{server.address.port}"
        command = ("closest", "--gateway", address, "--service", "nope", *options)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "weft.cli", *command), stdout=PIPE, stderr=PIPE
        )
        stdout, stderr = await process.communicate()
    assert process.returncode == 1
    assert stderr.decode() == f"weft: {address} knows no gateway of service 'nope'\n"
    assert stdout.decode() == ('{"service":"nope","candidates":[]}\n' if options else "")


def test_nobody_names_no_gateways(run_here: Run) -> None:
    done = run_here("closest", "--gateway", "127.0.0.1:1")
    assert done.returncode == 1
    assert "no gateway answers at" in done.stderr


def test_whoever_publishes_may_look_for_the_closest(gateway: str, run_here: Run) -> None:
    done = run_here("pub", "--closest", "--region", "eu", "closest.a", "hello")
    assert gateway
    assert done.returncode == 0
    done = run_here("pub", "--closest", "--region", "a b", "closest.a", "hello")
    assert done.returncode == 2
    assert "region 'a b'" in done.stderr
