import asyncio
import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

import weft
from weft.cli.commands import serve

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., AbstractAsyncContextManager[asyncio.subprocess.Process]]

ANYWHERE = ("serve", "--listen", "127.0.0.1:0")


async def address_of(process: asyncio.subprocess.Process) -> str:
    """Where a gateway says that it is ready."""
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    return line.partition(" is ready on ")[2].partition(";")[0]


async def test_it_serves_until_it_is_told_to_stop(started: Start) -> None:
    async with started(*ANYWHERE, "--name", "london") as process:
        address = await address_of(process)
        async with weft.connect(address) as connection:
            await connection.publish("a", "x", acknowledge=True)
        process.send_signal(signal.SIGTERM)
        _, log = await process.communicate()
        assert process.returncode == 0
        assert b"gateway=london" in log
        assert b"Traceback" not in log


async def test_an_interrupt_drains_it_too(started: Start) -> None:
    async with started(*ANYWHERE) as process:
        await address_of(process)
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0


async def test_it_tells_what_to_try(started: Start) -> None:
    async with started(*ANYWHERE) as process:
        address = await address_of(process)
        assert process.stdout is not None
        lines = [(await process.stdout.readline()).decode() for _ in range(3)]
        given = [shlex.split(line.partition("weft ")[2]) for line in lines]
        assert given == [
            ["sub", "greetings.>", "--gateway", address],
            [
                *("pub", "greetings.world", "hello", "--count", "1000", "--rate", "10"),
                *("--gateway", address),
            ],
            ["top", "--gateway", address],
        ]


async def test_what_it_tells_to_try_shows_something(started: Start) -> None:
    async with started(*ANYWHERE) as process:
        await address_of(process)
        assert process.stdout is not None
        lines = [(await process.stdout.readline()).decode() for _ in range(3)]
        sub, pub, top = [shlex.split(line.partition("weft ")[2]) for line in lines]
        async with started(*sub) as heard, started(*pub), started(*top, "--json") as looked:
            assert heard.stdout is not None
            assert looked.stdout is not None
            assert (await heard.stdout.readline()).endswith(b"  greetings.world  hello\n")
            while not (picture := json.loads(await looked.stdout.readline()))["subjects"]:
                pass
            assert picture["subjects"][0]["subject"] == "greetings.world"


async def test_logs_can_be_json(started: Start, certificates: Path) -> None:
    keys = ("--tls-cert", certificates / "first.pem", "--tls-key", certificates / "first.key")
    for options, scheme in ((), ""), (keys, "tls://"):
        arguments = (*ANYWHERE, "--name", "london", "--log-format", "json", *map(str, options))
        async with started(*arguments) as process:
            assert process.stderr is not None
            while not (line := json.loads(await process.stderr.readline()))["text"].startswith(
                f"ready on {scheme}127.0.0.1:"
            ):
                assert line["level"] == "info"
            assert (line["level"], line["gateway"]) == ("info", "london")
            process.send_signal(signal.SIGTERM)
            out, _ = await process.communicate()
            assert out == b""


async def test_an_option_wins_over_the_file(started: Start, tmp_path: Path) -> None:
    file = tmp_path / "weft.toml"
    file.write_text('name = "filed"\nlisten = "127.0.0.1:0"\n')
    async with started("serve", "--config", str(file), "--name", "typed") as process:
        assert process.stdout is not None
        assert b"gateway typed is ready" in await process.stdout.readline()


async def test_everything_can_be_said_through_tls(
    started: Start, run_here: Run, certificates: Path
) -> None:
    keys = (
        "--tls-cert",
        str(certificates / "first.pem"),
        "--tls-key",
        str(certificates / "first.key"),
    )
    async with started(*ANYWHERE, *keys) as process:
        address = (await address_of(process)).replace("127.0.0.1", "localhost")
        assert address.startswith("tls://")
        trusting = ("--gateway", address, "--tls-ca", str(certificates / "first.pem"))
        done = await asyncio.to_thread(run_here, "pub", "a", "x", *trusting)
        assert (done.returncode, done.stderr) == (0, "")
        done = await asyncio.to_thread(run_here, "status", *trusting)
        assert (done.returncode, done.stderr) == (0, "")
        done = await asyncio.to_thread(run_here, "pub", "a", "x", "--gateway", address)
        assert done.returncode == 1
        assert "cannot be trusted" in done.stderr
        assert done.stderr.endswith("; --tls-ca names the authority to trust\n")
        assert done.stderr.count("\n") == 1


@pytest.mark.req("MM-20")
@pytest.mark.parametrize("way", ["--join", "--registry"])
async def test_gateways_that_are_told_of_each_other_are_one(
    started: Start, tmp_path: Path, way: str
) -> None:
    secret = tmp_path / "mesh.secret"
    secret.write_text("what all gateways of this mesh know")
    secret.chmod(0o600)
    known = ("--mesh-secret", secret, "--region", "north")
    async with started(*ANYWHERE, *known) as first:
        address = await address_of(first)
        async with (
            started(*ANYWHERE, *known, way, address) as second,
            weft.connect(address, timeout_s=15.0) as here,
        ):
            heard = here.subscribe("a")
            await heard.ready(15.0)
            # Its service is started for the client, who waits for the first link.
            async with weft.connect(await address_of(second), timeout_s=15.0) as there:
                await wanted_there(there)
                await there.publish("a", b"")
                await heard.next(15.0)


async def wanted_there(connection: weft.AsyncConnection) -> None:
    """Wait until another gateway wants what is published here."""
    question = weft.Message(subject="a")
    while not (await connection.send_request("_WEFT.ask.subscribers", question, 15.0))["gateways"]:
        await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--listen", "nowhere"], "'nowhere' is not HOST:PORT"),
        (["--listen", "0.0.0.0:7411"], "is not a loopback address"),
        (["--name", "a b"], "name 'a b' is not"),
        (["--tls-cert", "x.pem"], "tls.cert and tls.key must both be set"),
        (["--config", "/no/such/file"], "/no/such/file cannot be read"),
        (["--log-level", "loud"], "'loud' is not one of"),
        (["extra"], "got unexpected extra argument"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    run_here: Run, arguments: list[str], sentence: str
) -> None:
    done = run_here("serve", *arguments)
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("missing", ["crc32c", "pyarrow"])
def test_without_its_packages_a_journal_is_refused_at_the_start(
    missing: str, tmp_path: Path
) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None\nfrom weft.cli.main import main\nmain()\n"
    )
    arguments = (*ANYWHERE, "--journal", "--data", str(tmp_path))
    done = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (f'weft: the journal needs {missing}: pip install "weft-mesh[journal]"\n')


async def test_an_address_in_use_is_a_failure(gateway: str, started: Start) -> None:
    async with started("serve", "--listen", gateway) as process:
        _, err = await process.communicate()
        assert process.returncode == 1
        assert f"cannot listen on {gateway}" in err.decode()
        assert b"Traceback" not in err


def test_the_command_is_named_as_another_terminal_can_call_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    assert serve.command_name() == f"{sys.executable} -m weft.cli"
    script = executable(tmp_path / "venv" / "bin" / "weft")
    assert serve.command_name() == str(script)
    monkeypatch.chdir(tmp_path)
    assert serve.command_name() == "venv/bin/weft"
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "my venv"))
    executable(tmp_path / "my venv" / "bin" / "weft")
    assert serve.command_name() == "'my venv/bin/weft'"


def test_the_command_is_just_weft_where_that_is_this_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    script = executable(tmp_path / "venv" / "bin" / "weft")
    # As in an active environment, or below `make`: other terminals do not have it.
    monkeypatch.setenv("PATH", str(script.parent))
    assert serve.command_name() == str(script)
    linked = tmp_path / "bin" / "weft"
    linked.parent.mkdir()
    linked.symlink_to(script)
    monkeypatch.setenv("PATH", str(linked.parent))
    assert serve.command_name() == "weft"
    other = executable(tmp_path / "other" / "weft")
    monkeypatch.setenv("PATH", str(other.parent))
    assert serve.command_name() == str(script)


async def test_the_command_can_be_called_in_a_terminal_with_another_path(
    started: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    async with started(*ANYWHERE) as process:
        await address_of(process)
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
    command = f"{line.partition(' sub ')[0]} --version"
    shell = await asyncio.create_subprocess_shell(
        command, env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    )
    assert await shell.wait() == 0


def executable(path: Path) -> Path:
    """A program that a shell would find."""
    path.parent.mkdir(parents=True)
    path.touch(0o755)
    return path
