import asyncio
import io
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

import weft
from weft import Connection
from weft.cli.app import run

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., AbstractAsyncContextManager[asyncio.subprocess.Process]]


class Terminal(io.StringIO):
    """A stream that says that a person is there."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("arguments", "given", "shown"),
    [
        (["21,5 °C"], None, ['{"":"21,5 °C"}']),
        (
            ["--field", "value:double=21.5", "--field", "unit=C"],
            None,
            ['{"value":21.5,"unit":"C"}'],
        ),
        (["--message-json", '{"a":[1]}', "--field", "b=2"], None, ['{"a":[1],"b":"2"}']),
        ([], b"one\ntwo\n", ['{"":"one"}', '{"":"two"}']),
        (["-"], b"one\n", ['{"":"one"}']),
        (["--json-lines"], b'{"a":1}\n{"b":2}\n', ['{"a":1}', '{"b":2}']),
        (["--", "-5"], None, ['{"":"-5"}']),
        (["same", "--count", "3"], None, ['{"":"same"}'] * 3),
        (["same", "--count", "3", "--rate", "1000", "--ack"], None, ['{"":"same"}'] * 3),
    ],
)
def test_what_was_typed_arrives(
    gateway: str, run_here: Run, arguments: list[str], given: bytes | None, shown: list[str]
) -> None:
    with Connection(gateway) as connection, connection.subscribe("tests.pub") as subscription:
        done = run_here("pub", "tests.pub", *arguments, given=given)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        received = [next(subscription).to_json() for _ in shown]
    assert received == shown


@pytest.mark.parametrize(
    ("good", "published"),
    [
        (0, "nothing is published"),
        (1, "the line before it is published"),
        (3, "the 3 lines before it are published"),
    ],
)
def test_a_bad_line_is_a_failure_that_says_what_was_published(
    gateway: str, run_here: Run, good: int, published: str
) -> None:
    with Connection(gateway) as connection, connection.subscribe("tests.bad") as subscription:
        done = run_here("pub", "tests.bad", "--json-lines", given=b'{"a":1}\n' * good + b'{"b"\n')
        received = [next(subscription).to_json() for _ in range(good)]
    assert received == ['{"a":1}'] * good
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"weft: bad message: line {good + 1}, column 5: not JSON: Expecting ':' delimiter;"
        f" {published}\n"
    )


def test_the_reply_subject_is_passed_on(gateway: str, run_here: Run) -> None:
    with Connection(gateway) as connection, connection.subscribe("tests.reply") as subscription:
        assert run_here("pub", "tests.reply", "x", "--reply", "tests.answers").returncode == 0
        assert next(subscription).reply == "tests.answers"


@pytest.mark.req("HUB-7")
def test_the_reply_subject_can_be_masked(gateway: str, run_here: Run) -> None:
    options = ["--reply", "tests.hidden", "--masked", "--count", "2"]
    with (
        Connection(gateway) as connection,
        connection.subscribe("tests.masked") as subscription,
        connection.subscribe("tests.hidden") as answers,
    ):
        target = ["--gateway", gateway]
        assert run_here("pub", "tests.masked", "x", *target, *options).returncode == 0
        for _ in range(2):
            message = next(subscription)
            assert (message.reply == "tests.hidden", message.publisher) == (False, 0)
        connection.publish("tests.hidden", "still here")
        assert next(answers).text == "still here"


def test_only_a_reply_can_be_masked(run_here: Run) -> None:
    done = run_here("pub", "a", "x", "--masked")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--masked needs --reply" in done.stderr


def test_json_tells_what_was_sent(gateway: str, run_here: Run) -> None:
    done = run_here("pub", "--gateway", gateway, "tests.counted", "four", "--count", "5", "--json")
    facts = json.loads(done.stdout)
    assert facts.pop("seconds") > 0
    assert facts == {"subject": "tests.counted", "messages": 5, "bytes": 20}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["a..b", "x"], "weft: bad subject: 'a..b' is not a legal subject: element 2 is empty\n"),
        (["a.*", "x"], "weft: bad subject: subject 'a.*' holds a wildcard; only a pattern may\n"),
        (["a", "x", "--field", "b=1"], "either a text or fields"),
        (["a", "--field", "n:int32=x"], "'x' is not a whole number"),
        (["a", "--message-json", "{"], "not JSON"),
        (["a", "--json-lines", "x"], "--json-lines is for standard input"),
        (["a", "--count", "2"], "--count repeats one message"),
        (["a", "-", "--field", "b=1"], "either fields or lines"),
        (["a", "x", "--count", "0"], "0 is not in the range"),
        (["a", "x", "--rate", "0"], "0.0 is not in the range"),
        ([], "missing argument 'SUBJECT'; see 'weft pub --help'"),
        (["a", "x", "--gateway", "nowhere:99999999"], "has no port in 1 … 65535"),
    ],
)
@pytest.mark.usefixtures("gateway")
def test_a_mistake_is_one_sentence_and_exit_code_2(
    run_here: Run, arguments: list[str], sentence: str
) -> None:
    done = run_here("pub", *arguments)
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("command", ["pub", "req", "reply"])
@pytest.mark.parametrize("number", ["-5", "-57.5"])
def test_a_negative_number_says_how_it_is_sent(run_here: Run, command: str, number: str) -> None:
    done = run_here(command, "a", number)
    assert done.returncode == 2
    assert done.stderr == (
        "weft: no such option '-5' (a negative number comes after --, as in"
        f" 'weft {command} -- SUBJECT -5'); see 'weft {command} --help'\n"
    )


@pytest.mark.parametrize(
    "arguments", [["bad..subject"], [""], ["a.*"], ["a.b", "--reply", "bad..subject"]]
)
@pytest.mark.usefixtures("gateway")
def test_a_subject_that_cannot_be_is_refused_though_there_is_nothing_to_publish(
    run_here: Run, arguments: list[str]
) -> None:
    done = run_here("pub", *arguments, given=b"")
    assert done.stderr.startswith("weft: bad subject: ")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_at_a_terminal_there_must_be_something_to_publish(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for stream in (Terminal(), None):
        monkeypatch.setattr(sys, "stdin", stream)
        assert run(["pub", "a"]) == 2
        assert "nothing to publish" in capsys.readouterr().err


def test_at_a_terminal_it_tells_what_it_did(gateway: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert run(["pub", "a.b", "x", "--gateway", gateway]) == 0
    assert terminal.getvalue().endswith("weft: published 1 message to a.b\n")
    assert run(["pub", "a.b", "x", "--count", "2000", "--gateway", gateway]) == 0
    assert "weft: published 2,000 messages to a.b in " in terminal.getvalue()


@pytest.mark.usefixtures("gateway")
def test_a_refused_subject_is_a_failure(run_here: Run) -> None:
    done = run_here("pub", "_WEFT.event.connected", "forged")
    assert done.returncode == 1
    assert done.stderr.startswith("weft: reserved: ")
    assert done.stderr.count("\n") == 1


def test_no_gateway_is_a_failure(run_here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_GATEWAY", "127.0.0.1:1")
    done = run_here("pub", "a", "x")
    assert done.returncode == 1
    assert done.stderr.startswith("weft: unreachable: no gateway answers at ")
    assert done.stderr.count("\n") == 1


@pytest.mark.usefixtures("gateway")
async def test_lines_are_published_as_they_come(started: Start) -> None:
    async with started("sub", "tests.lines") as reader, started("pub", "tests.lines") as writer:
        assert reader.stdout
        assert reader.stderr
        assert writer.stdin
        await reader.stderr.readline()
        for text in (b"first", b"second"):
            writer.stdin.write(text + b"\n")
            await writer.stdin.drain()
            assert (await reader.stdout.readline()).endswith(b"  tests.lines  %s\n" % text)
        writer.stdin.close()
        assert await writer.wait() == 0


async def test_a_connection_that_was_made_anew_is_a_failure(started: Start) -> None:
    async with started("serve", "--listen", "127.0.0.1:0") as first:
        address = (await line_of(first.stdout)).partition(" ready on ")[2].partition(";")[0]
        async with started("pub", "tests.anew", "--gateway", address, "--json") as writer:
            assert writer.stdin
            async with weft.connect(address) as connection, connection.subscribe(">") as heard:
                await heard.ready()
                writer.stdin.write(b"first\n")
                assert (await anext(heard)).text == "first"
            first.kill()
            assert (await line_of(writer.stderr)).startswith("weft: disconnected from ")
            async with started("serve", "--listen", address) as second:
                await line_of(second.stdout)
                assert (await line_of(writer.stderr)).startswith("weft: connected again to ")
                out, err = await writer.communicate(b"second\n")
        assert writer.returncode == 1
        assert json.loads(out)["messages"] == 2
        assert err.decode().splitlines()[-1] == (
            "weft: connection lost: some of the 2 messages to tests.anew may be lost, as the"
            " connection was lost and reconnected"
        )


@pytest.mark.parametrize(("options", "rest"), [(["--ack"], b"second\n"), ([], b"")])
async def test_what_is_acknowledged_is_not_lost_with_its_connection(
    started: Start, options: list[str], rest: bytes
) -> None:
    async with started("serve", "--listen", "127.0.0.1:0") as first:
        address = (await line_of(first.stdout)).partition(" ready on ")[2].partition(";")[0]
        async with started("pub", "tests.acked", "--gateway", address, *options) as writer:
            assert writer.stdin
            async with weft.connect(address) as connection, connection.subscribe(">") as heard:
                await heard.ready()
                writer.stdin.write(b"first\n")
                await anext(heard)
            # It drains: what it owes, such as its OK, is sent.
            first.terminate()
            assert (await line_of(writer.stderr)).startswith("weft: disconnected from ")
            await first.wait()
            async with started("serve", "--listen", address) as second:
                await line_of(second.stdout)
                assert (await line_of(writer.stderr)).startswith("weft: connected again to ")
                _, err = await writer.communicate(rest)
        assert writer.returncode == 0
        assert b"lost" not in err


async def line_of(stream: asyncio.StreamReader | None) -> str:
    """The next line of a process's output."""
    assert stream is not None
    return (await stream.readline()).decode()
