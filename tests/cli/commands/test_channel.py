import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from tests.cli.commands.test_sub import line_of

import weft
from weft.errors import ChannelClosed

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., AbstractAsyncContextManager[asyncio.subprocess.Process]]

HORSE = "correct horse"


@pytest.fixture
def secret(tmp_path: Path) -> str:
    """A file with a password."""
    file = tmp_path / "secret.txt"
    file.write_text(f"{HORSE}\n")
    file.chmod(0o600)
    return str(file)


async def test_what_is_said_in_a_channel_is_shown_by_its_own_subject(
    gateway: str, started: Start, secret: str
) -> None:
    arguments = ("channel", "open", "cli.chess", "--password-file", secret, "--count", "2")
    async with started(*arguments) as process:
        assert "opened cli.chess at " in await line_of(process.stderr)
        async with weft.connect(gateway) as connection:
            table = await connection.join_channel("cli.chess", HORSE)
            await table.publish("moves.white", weft.Message(move="e4"))
            await table.publish("chat", "well\x1b[2J")
            lines = [await line_of(process.stdout) for _ in range(2)]
        assert [line.split("  ", 1)[1] for line in lines] == [
            'moves.white  move="e4"\n',
            "chat  well\\x1b[2J\n",
        ]
        assert await process.wait() == 0


async def test_only_what_is_asked_for_is_shown_and_as_json(gateway: str, started: Start) -> None:
    async with weft.connect(gateway) as connection:
        room = await connection.open_channel("cli.room")
        arguments = ("channel", "join", "cli.room", "--subject", "b", "--count", "1", "--json")
        async with started(*arguments) as process:
            assert "joined cli.room at " in await line_of(process.stderr)
            await room.publish("a", "unseen")
            await room.publish("b", "seen")
            shown = json.loads(await line_of(process.stdout))
            assert (shown["subject"], shown["text"]) == ("b", "seen")
            assert await process.wait() == 0


async def test_somebody_speaks_from_a_shell(gateway: str, run_here: Run, secret: str) -> None:
    async with weft.connect(gateway) as connection:
        room = await connection.open_channel("cli.said", HORSE)
        heard = room.subscribe()
        await heard.ready()
        done = await asyncio.to_thread(
            run_here, "channel", "pub", "cli.said", "moves.white", "e4", "--password-file", secret
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        message = await heard.next(10)
        assert (room.subject_of(message), message.text) == ("moves.white", "e4")


async def test_a_wrong_password_is_one_sentence(gateway: str, run_here: Run) -> None:
    async with weft.connect(gateway) as connection:
        await connection.open_channel("cli.wrong", HORSE)
        arguments = ("channel", "pub", "cli.wrong", "a", "x", "--password-file", "-")
        done = await asyncio.to_thread(lambda: run_here(*arguments, given=b"battery\n"))
    assert done.returncode == 1
    assert done.stderr.startswith("weft: wrong password: ")
    assert "battery" not in done.stderr


async def test_the_environment_may_hold_the_password(
    gateway: str, run_here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_CHANNEL_PASSWORD", HORSE)
    async with weft.connect(gateway) as connection:
        await connection.open_channel("cli.environment", HORSE)
        done = await asyncio.to_thread(run_here, "channel", "pub", "cli.environment", "a", "x")
    assert (done.returncode, done.stderr) == (0, "")


async def test_a_terminal_is_asked_for_the_password(
    gateway: str, run_here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    # There is no terminal here; this is where click would read from it without an echo.
    monkeypatch.setattr("click.termui.hidden_prompt_func", lambda _prompt: HORSE)
    async with weft.connect(gateway) as connection:
        await connection.open_channel("cli.asked", HORSE)
        arguments = ("channel", "pub", "cli.asked", "a", "x", "--ask-password")
        done = await asyncio.to_thread(run_here, *arguments)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.usefixtures("gateway")
async def test_it_stays_until_it_is_interrupted(started: Start) -> None:
    async with started("channel", "open", "cli.stays") as process:
        assert "opened cli.stays at " in await line_of(process.stderr)
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130


async def test_a_channel_that_is_closed_ends_it_with_the_reason(
    gateway: str, started: Start, run_here: Run
) -> None:
    async with started("channel", "open", "cli.closed") as process:
        await line_of(process.stderr)
        async with weft.connect(gateway) as connection:
            joined = await connection.join_channel("cli.closed")
            done = await asyncio.to_thread(run_here, "channel", "close", "cli.closed")
            assert (done.returncode, done.stderr) == (0, "weft: closed cli.closed\n")
            assert await process.wait() == 1
            said = (await process.communicate())[1].decode()
            assert "channel closed: " in said
            while joined.is_open:
                await asyncio.sleep(0.01)
            assert isinstance(joined.error, ChannelClosed)


async def test_channels_are_listed_and_shown(gateway: str, run_here: Run) -> None:
    async with weft.connect(gateway, name="me.1") as connection:
        room = await connection.open_channel("cli.listed")
        listed = await asyncio.to_thread(run_here, "channel", "list")
        assert any(line.split()[0] == "cli.listed" for line in listed.stdout.splitlines()[2:])
        as_json = await asyncio.to_thread(run_here, "channel", "list", "--json")
        rows = {row["name"]: row for row in map(json.loads, as_json.stdout.splitlines())}
        assert (rows["cli.listed"]["id"], rows["cli.listed"]["members"]) == (room.id, 1)
        shown = await asyncio.to_thread(run_here, "channel", "show", "cli.listed")
        assert shown.stdout.startswith("channel cli.listed, without a password")
        assert "opened by me.1 at tested" in shown.stdout
        as_json = await asyncio.to_thread(run_here, "channel", "show", "cli.listed", "--json")
        facts = json.loads(as_json.stdout)
        assert (facts["owner"], facts["places"][0]["members"]) == ("me.1", 1)


@pytest.mark.usefixtures("gateway")
def test_a_channel_that_is_not_there_is_told(run_here: Run) -> None:
    for verb in ("show", "close"):
        done = run_here("channel", verb, "cli.nowhere")
        assert done.returncode == 1
        assert done.stderr.startswith("weft: not known: ")
    done = run_here("channel", "join", "cli.nowhere")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "no channel 'cli.nowhere' without a password" in done.stderr


@pytest.mark.usefixtures("gateway")
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["pub", "room", "a"], "nothing to publish"),
        (["pub", "room", "a..b", "x"], "element 2 is empty"),
        (["join", "room", "--password-file", "/nowhere/at/all"], "cannot be read: No such file"),
        (["join", "room", "--password-file", "-"], "the password is empty"),
        (["join", "room", "--password-file", "x", "--ask-password"], "give one of"),
        (["join", "room", "--password", "x"], "no such option '--password' (did you mean"),
    ],
)
def test_a_mistake_is_told_before_anything_is_done(
    run_here: Run, arguments: list[str], text: str
) -> None:
    done = run_here("channel", *arguments)
    assert done.returncode == 2
    assert text in done.stderr


@pytest.mark.usefixtures("gateway")
@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"two\nlines\n", "more than one line"),
        (b"\xff\n", "not UTF-8"),
        (b"x" * 5000, "more than 4096 bytes"),
        (b"", "the password is empty"),
    ],
)
def test_a_password_file_holds_one_line(
    run_here: Run, tmp_path: Path, content: bytes, text: str
) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    file.chmod(0o600)
    done = run_here("channel", "join", "room", "--password-file", str(file))
    assert done.returncode == 2
    assert text in done.stderr


@pytest.mark.usefixtures("gateway")
@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_password_that_others_can_read_is_worth_a_warning(run_here: Run, secret: str) -> None:
    Path(secret).chmod(0o644)
    done = run_here("channel", "join", "cli.nobody", "--password-file", secret)
    assert "has mode 0644" in done.stderr
