import asyncio
import json
import subprocess
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

import weft
from weft.cli.options.target import CommandTarget
from weft.cli.query import fetch_status

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., AbstractAsyncContextManager[asyncio.subprocess.Process]]


def test_gateway_services_and_connections_are_shown(gateway: str, run_here: Run) -> None:
    with weft.Connection(gateway, name="seen.1"):
        done = run_here("status")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"gateway tested at {gateway}, ready, Weft ")
    assert "\nservices\n" in done.stdout
    assert "\ndefault " in done.stdout
    assert "\nconnections of default\n" in done.stdout
    assert " seen.1 " in done.stdout


def test_json_has_exact_numbers(gateway: str, run_here: Run) -> None:
    with weft.Connection(gateway, name="seen.2") as connection:
        connection.publish("status.json", "x", acknowledge=True)
        values = json.loads(run_here("status", "--json").stdout)
    assert values["gateway"] == "tested"
    assert values["services"]["default"]["status"]["connections"] >= 1
    [row] = [row for row in values["connection_list"] if row["name"] == "seen.2"]
    assert row["messages"] == 1


def test_what_is_told_twice_has_one_name(gateway: str, run_here: Run) -> None:
    with weft.Connection(gateway):
        told = fetch_status(
            CommandTarget(gateway=gateway, service="default", name="", tls_ca=None, is_json=True)
        )
        values = json.loads(run_here("status", "--json").stdout)
    assert set(values) - set(told) == {"service", "connection_list", "more"}
    assert {type(values[key]) for key in ("connections", "more")} == {int}


@pytest.mark.parametrize("name", [[], ["--name", "seen.6"]])
def test_whoever_asks_is_neither_counted_nor_listed(
    gateway: str, run_here: Run, name: list[str]
) -> None:
    mine = ("--service", "status-alone", *name)
    with weft.Connection(gateway, service="status-alone", name="seen.6"):
        values = json.loads(run_here("status", "--json", *mine).stdout)
    assert values["services"]["status-alone"]["status"]["connections"] == 1
    assert [row["name"] for row in values["connection_list"]] == ["seen.6"]
    shown = run_here("status", *mine).stdout
    assert shown.splitlines()[-1] == "no connections to status-alone"


@pytest.mark.req("HUB-5")
def test_a_connection_is_looked_up_by_name_or_number(gateway: str, run_here: Run) -> None:
    with (
        weft.Connection(gateway, name="seen.3") as connection,
        connection.subscribe(["status.a", "status.>"], group="g", policy="latest"),
    ):
        by_name = run_here("status", "--connection", "seen.3")
        rows = json.loads(run_here("status", "--connection", "seen.3", "--json").stdout)
        number = str(rows["subscriptions"][0]["connection"])
        by_number = run_here("status", "--connection", number)
    assert by_name.returncode == 0
    assert by_name.stdout.splitlines()[0] == "subscriptions of seen.3"
    shown = {tuple(line.split()[2:]) for line in by_name.stdout.splitlines()[2:]}
    assert shown == {("status.a", "g", "latest"), ("status.>", "g", "latest")}
    assert by_number.stdout.splitlines()[2:] == by_name.stdout.splitlines()[2:]


@pytest.mark.parametrize("scheme", ["", "ws://"])
def test_a_connection_is_shown_with_its_address(gateway: str, run_here: Run, scheme: str) -> None:
    with weft.Connection(f"{scheme}{gateway}", name="seen.5") as connection:
        connection.flush()
        values = json.loads(run_here("status", "--json").stdout)
    (row,) = [row for row in values["connection_list"] if row["name"] == "seen.5"]
    host, _, port = row["address"].partition(":")
    assert host == "127.0.0.1"
    assert port.isdecimal()


@pytest.mark.req("HUB-5")
def test_a_subject_is_looked_up(gateway: str, run_here: Run) -> None:
    with (
        weft.Connection(gateway, name="seen.4") as connection,
        connection.subscribe("status.*"),
    ):
        done = run_here("status", "--subject", "status.anything")
        values = json.loads(run_here("status", "--subject", "status.x", "--json").stdout)
    assert done.stdout.splitlines()[0] == "subscribers of status.anything"
    assert [line.split()[1] for line in done.stdout.splitlines()[2:]] == ["seen.4"]
    assert [row["name"] for row in values["subscribers"]] == ["seen.4"]


@pytest.mark.parametrize("name", ["nobody", "123456789"])
@pytest.mark.usefixtures("gateway")
def test_a_connection_that_is_not_there_is_a_failure(run_here: Run, name: str) -> None:
    done = run_here("status", "--connection", name)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"weft: not known: no connection '{name}'\n"


def test_a_connection_without_subscriptions_is_none_that_is_missing(
    gateway: str, run_here: Run
) -> None:
    with weft.Connection(gateway, name="seen.5"):
        done = run_here("status", "--connection", "seen.5")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("options", [[], ["--json"], ["--subject", "a"], ["--connection", "a"]])
def test_a_service_that_does_not_run_is_a_failure_and_not_started(
    gateway: str, run_here: Run, options: list[str]
) -> None:
    with weft.Connection(gateway):
        done = run_here("status", "--service", "unheard-of", *options)
        services = json.loads(run_here("status", "--json").stdout)["services"]
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        f"weft: no such service: {gateway} does not run a service 'unheard-of', only "
    )
    assert "default" in done.stderr
    assert "unheard-of" not in services


async def test_a_gateway_without_services_says_so(started: Start, run_here: Run) -> None:
    async with started("serve", "--listen", "127.0.0.1:0") as process:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        address = line.partition(" is ready on ")[2].partition(";")[0]
        done = await asyncio.to_thread(run_here, "status", "--gateway", address)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[2:] == [
        "no service runs yet",
        "",
        "no connections to default",
    ]


def test_only_one_thing_is_looked_up_at_once(run_here: Run) -> None:
    done = run_here("status", "--connection", "a", "--subject", "b")
    assert done.returncode == 2
    assert "not for both" in done.stderr


def test_what_is_no_gateway_is_a_failure(run_here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_GATEWAY", "127.0.0.1:1")
    done = run_here("status")
    assert done.returncode == 1
    assert done.stderr.startswith("weft: unreachable: ")
    assert done.stderr.count("\n") == 1
