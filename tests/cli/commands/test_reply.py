import asyncio
import json
import signal
import subprocess
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

import weft
from weft.errors import RequestFailed

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., AbstractAsyncContextManager[asyncio.subprocess.Process]]


async def ready(process: asyncio.subprocess.Process) -> None:
    assert process.stderr is not None
    assert b"answering " in await process.stderr.readline()


@pytest.mark.parametrize(
    ("arguments", "request_body", "answer"),
    [
        (["pong"], "ping", {"": "pong"}),
        (["--field", "price:double=101.5"], "x", {"price": 101.5}),
        (["--echo"], weft.Message(weft.Field.int32("n", 7)), {"n": 7}),
        (["--echo"], b"\xff", {"": b"\xff"}),
        (["--command", "tr a-z A-Z"], "hello", {"": b"HELLO"}),
        (["--command", "cat"], weft.Message(n=7), {"": b'{"n":7}'}),
        (["--command", 'echo "$WEFT_SUBJECT"'], "x", {"": b"replied"}),
    ],
)
async def test_a_request_is_answered(
    gateway: str,
    started: Start,
    arguments: list[str],
    request_body: weft.Message | bytes | str,
    answer: dict[str, object],
) -> None:
    async with started("reply", "replied", *arguments, "--count", "1") as process:
        await ready(process)
        async with weft.connect(gateway) as connection:
            received = await connection.send_request("replied", request_body, timeout=20)
        assert received.to_dict() == answer
        assert await process.wait() == 0


@pytest.mark.parametrize(("options", "groups"), [([], [""]), (["--group", "desk"], ["desk"])])
async def test_it_is_in_a_group_only_if_asked_to(
    gateway: str, started: Start, options: list[str], groups: list[str]
) -> None:
    async with started("reply", "replied.grouped", "--echo", *options) as process:
        await ready(process)
        async with weft.connect(gateway) as connection:
            question = {"subject": "replied.grouped"}
            found = await connection.send_request("_WEFT.ask.subscribers", question, timeout=20)
    assert [each["group"] for each in found.to_dict()["subscribers"]] == groups


async def test_a_command_that_takes_too_long_is_answered_with_an_error(
    gateway: str, started: Start
) -> None:
    command = ["--command", "sleep 1000", "--timeout", "0.1"]
    async with started("reply", "replied.late", *command) as process:
        await ready(process)
        async with weft.connect(gateway) as connection:
            with pytest.raises(RequestFailed, match=r"^the command took longer than 0\.1 s$"):
                await connection.send_request("replied.late", "x", timeout=20)


async def test_a_command_that_fails_is_answered_with_an_error(gateway: str, started: Start) -> None:
    async with started("reply", "replied.failed", "--command", "exit 3", "--count", "1") as process:
        await ready(process)
        async with weft.connect(gateway) as connection:
            with pytest.raises(RequestFailed, match=r"^the command ended with 3$"):
                await connection.send_request("replied.failed", "x", timeout=20)
        assert await process.wait() == 0


async def test_a_command_that_writes_for_ever_is_answered_with_an_error(
    gateway: str, started: Start
) -> None:
    async with started("reply", "replied.endless", "--command", "yes") as process:
        await ready(process)
        async with weft.connect(gateway) as connection:
            with pytest.raises(RequestFailed, match=r"^the command wrote .* limit of 8388608$"):
                await connection.send_request("replied.endless", "x", timeout=20)


async def test_what_awaits_no_answer_is_shown_and_not_answered(
    gateway: str, started: Start
) -> None:
    async with started("reply", "replied.shown", "yes", "--json", "--count", "1") as process:
        await ready(process)
        async with weft.connect(gateway) as connection:
            await connection.publish("replied.shown", "news")
            assert (
                await connection.send_request("replied.shown", "question", timeout=20)
            ).text == "yes"
        assert process.stdout is not None
        lines = (await process.stdout.read()).splitlines()
        assert [json.loads(line)["text"] for line in lines] == ["news", "question"]


async def test_several_share_the_work(gateway: str, started: Start) -> None:
    async with (
        started("reply", "replied.shared", "one") as one,
        started("reply", "replied.shared", "two") as two,
    ):
        await ready(one)
        await ready(two)
        async with weft.connect(gateway) as connection:
            answers = await asyncio.gather(
                *(connection.send_request("replied.shared", "x", timeout=20) for _ in range(40))
            )
        assert {answer.text for answer in answers} == {"one", "two"}


@pytest.mark.usefixtures("gateway")
async def test_an_interrupt_ends_it_with_130(started: Start) -> None:
    async with started("reply", "replied.never", "x") as process:
        await ready(process)
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
        assert process.returncode == 130
        assert b"Traceback" not in err


@pytest.mark.parametrize("arguments", [[], ["text", "--echo"], ["--echo", "--command", "cat"]])
def test_there_is_exactly_one_way_to_answer(run_here: Run, arguments: list[str]) -> None:
    done = run_here("reply", "a", *arguments)
    assert done.returncode == 2
    assert "answer with one of TEXT, --field, --echo and --command" in done.stderr
