import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path

import pytest
from tests.attacks.gateway_process import GatewayProcess
from tests.broker.locksmith import key_of, record
from tests.cli.gateway_lines import served

import weft
from weft.cli.commands.sub import beginning_from
from weft.gateway.keys.key_file import change_keys

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., AbstractAsyncContextManager[asyncio.subprocess.Process]]


async def line_of(stream: asyncio.StreamReader | None) -> str:
    """The next line of a process's output."""
    assert stream is not None
    return (await stream.readline()).decode()


async def test_each_message_is_a_line(gateway: str, started: Start) -> None:
    async with started("sub", "shown.>", "other", "--count", "3") as process:
        assert "listening to shown.>, other at " in await line_of(process.stderr)
        async with weft.connect(gateway) as connection:
            await connection.publish("shown.a", weft.Message(city="London", temp=21.5))
            await connection.publish("unseen", "x")
            await connection.publish("other", "text\x1b[2J")
            await connection.publish("shown.b", b"\xff\x00")
        lines = [await line_of(process.stdout) for _ in range(3)]
        assert [line.split("  ", 1)[1] for line in lines] == [
            'shown.a  city="London" temp=21.5\n',
            "other  text\\x1b[2J\n",
            "shown.b  <2 bytes: ff00>\n",
        ]
        assert await process.wait() == 0


@pytest.mark.usefixtures("gateway")
async def test_the_largest_numbers_in_a_list_are_shown(started: Start, run_here: Run) -> None:
    async with started("sub", "shown.list", "--count", "1") as process:
        await line_of(process.stderr)
        published = await asyncio.to_thread(
            run_here, "pub", "shown.list", "--message-json", '{"l":[18446744073709551615]}'
        )
        assert published.returncode == 0
        assert (await line_of(process.stdout)).endswith("  l=[18446744073709551615]\n")
        assert await process.wait() == 0


async def test_json_has_everything(gateway: str, started: Start) -> None:
    async with started("sub", "--json", "json.sub", "--count", "1") as process:
        await line_of(process.stderr)
        async with weft.connect(gateway) as connection:
            await connection.publish("json.sub", "hello", reply="answers.here")
        values = json.loads(await line_of(process.stdout))
        assert values["subject"] == "json.sub"
        assert values["reply"] == "answers.here"
        assert values["text"] == "hello"
        assert min(values[key] for key in ("origin", "publisher", "sequence", "time")) > 0


@pytest.mark.parametrize("command", [["sub", "b.x"], ["reply", "b.x", "--echo"]])
def test_a_refusal_is_told_once(
    tmp_path: Path, run_here: Run, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    change_keys(tmp_path, lambda _: (record("quotes"), record("web", "client", subscribe=["a.>"])))
    with served("--data", str(tmp_path)) as locked:
        weft.Connection(locked.address, service="weather", key=key_of("quotes")).close()
        monkeypatch.setenv("WEFT_KEY", key_of("web"))
        done = run_here(*command, "--service", "weather", "--gateway", locked.address)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "weft: not allowed: this connection may not subscribe to 'b.x'\n"


async def test_a_listener_takes_no_request_from_anybody(gateway: str, started: Start) -> None:
    async with started("sub", "asked.only") as process:
        await line_of(process.stderr)
        async with weft.connect(gateway) as connection:
            try:
                await connection.send_request("asked.only", "x", timeout=5)
            except weft.errors.NotKnown:
                return
            raise AssertionError("the listener was chosen to answer")


async def test_members_of_a_group_share_what_comes(gateway: str, started: Start) -> None:
    lines: asyncio.Queue[tuple[int, str]] = asyncio.Queue(100)

    async def pass_on(number: int, process: asyncio.subprocess.Process) -> None:
        while line := await line_of(process.stdout):
            await lines.put((number, line.split()[-1]))

    async with (
        started("sub", "--group", "g", "shared") as one,
        started("sub", "--group", "g", "shared") as two,
        asyncio.TaskGroup() as group,
    ):
        await line_of(one.stderr)
        await line_of(two.stderr)
        readers = [group.create_task(pass_on(*each)) for each in enumerate((one, two))]
        async with weft.connect(gateway) as connection:
            for number in range(20):
                await connection.publish("shared", str(number))
            shown = [await lines.get() for _ in range(20)]
        for reader in readers:
            reader.cancel()
    assert {number for number, _ in shown} == {0, 1}
    assert sorted(int(text) for _, text in shown) == list(range(20))


@pytest.mark.usefixtures("gateway")
async def test_an_interrupt_ends_it_with_130(started: Start) -> None:
    async with started("sub", "never") as process:
        await line_of(process.stderr)
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
        assert (process.returncode, out) == (130, b"")
        assert b"Traceback" not in err


async def test_lost_messages_are_told(gateway: str, started: Start) -> None:
    nowhere = asyncio.subprocess.DEVNULL
    async with started("sub", "--policy", "drop_old", "flood", stdout=nowhere) as process:
        await line_of(process.stderr)
        process.send_signal(signal.SIGSTOP)
        async with weft.connect(gateway) as connection:
            # More than the sockets, the gateway and the client hold for it.
            for _ in range(600):
                await connection.publish("flood", bytes(100_000))
            await connection.flush()
        process.send_signal(signal.SIGCONT)
        assert (await line_of(process.stderr)).startswith("weft: gap: ")


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        (signal.SIGKILL, ""),
        (signal.SIGTERM, "the gateway is closing down"),
    ],
)
async def test_a_lost_connection_and_a_new_one_are_told_in_a_line_each(
    started: Start, ending: signal.Signals, reason: str
) -> None:
    async with started("serve", "--listen", "127.0.0.1:0") as first:
        address = (await line_of(first.stdout)).partition(" ready on ")[2].partition(";")[0]
        async with started("sub", "again", "--gateway", address, "--name", "me.1") as process:
            await line_of(process.stderr)
            first.send_signal(ending)
            line = await line_of(process.stderr)
            assert line.startswith(f"weft: disconnected from tcp://{address}: {reason}")
            assert line.endswith("; trying to connect again\n")
            await first.wait()
            async with started("serve", "--listen", address, "--name", "second") as second:
                await line_of(second.stdout)
                assert await line_of(process.stderr) == (
                    f"weft: connected again to gateway second at tcp://{address} as me.1;"
                    " messages may have been missed meanwhile\n"
                )
                async with weft.connect(address) as connection:
                    await connection.publish("again", "still there")
                assert (await line_of(process.stdout)).endswith("  again  still there\n")
                process.send_signal(signal.SIGINT)
                out, err = await process.communicate()
                assert (out, err.strip()) == (b"", b"")


async def test_a_reader_that_goes_away_ends_it_quietly(gateway: str, started: Start) -> None:
    read, write = os.pipe()
    async with started("sub", "piped", stdout=write) as process:
        os.close(write)
        os.close(read)
        await line_of(process.stderr)
        async with weft.connect(gateway) as connection:
            while process.returncode is None:
                await connection.publish("piped", "x")
                await connection.flush()
        assert process.returncode == 141
        assert process.stderr is not None
        assert await process.stderr.read() == b""


@pytest.mark.usefixtures("gateway")
def test_a_pattern_that_cannot_be_is_refused(run_here: Run) -> None:
    done = run_here("sub", "a.>.b")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "'>' may only be the last element" in done.stderr


def test_a_policy_that_does_not_exist_is_refused(run_here: Run) -> None:
    done = run_here("sub", "a", "--policy", "perhaps")
    assert done.returncode == 2
    assert "'perhaps' is not one of" in done.stderr


def test_what_was_kept_is_shown_first(run_here: Run, tmp_path: Path) -> None:
    settings = {"data": str(tmp_path), "journal.patterns": ["a.>"]}
    with GatewayProcess(tmp_path, settings) as gateway:
        with weft.Connection(gateway.address) as connection:
            for number in range(5):
                connection.publish("a.b", {"n": number}, acknowledge=True)
        target = ("--gateway", gateway.address)
        for since, shown in (("0", 5), ("3", 2), ("1h", 5), ("2001-01-01T00:00Z", 5)):
            ended = run_here("sub", "a.>", "--since", since, "--count", str(shown), *target)
            assert ended.returncode == 0
            lines = ended.stdout.splitlines()
            assert [line.split()[-1] for line in lines] == [f"n={n}" for n in range(5 - shown, 5)]


@pytest.mark.usefixtures("gateway")
@pytest.mark.parametrize("since", ["yesterday", "-5", "5"])
def test_a_time_that_cannot_be_is_refused(run_here: Run, since: str) -> None:
    # There is no journal, so even a position that could be is refused, by the gateway.
    ended = run_here("sub", "a", "--since", since)
    assert ended.returncode != 0
    assert ("keeps no journal" if since == "5" else f"since {since!r}") in ended.stderr


def test_a_moment_without_a_time_zone_is_of_this_machine() -> None:
    moment = beginning_from("2026-11-16T09:30")
    assert isinstance(moment, datetime)
    assert moment.tzinfo is not None
    assert (moment.hour, moment.minute) == (9, 30)
