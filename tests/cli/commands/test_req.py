import json
import subprocess
from collections.abc import Callable

import pytest

import weft

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_the_answer_is_printed_as_it_is(gateway: str, run_here: Run) -> None:
    with (
        weft.Connection(gateway) as connection,
        connection.subscribe("asked.text", lambda m: m.respond(f"two\nlines for {m.text}")),
    ):
        done = run_here("req", "asked.text", "me")
    assert (done.returncode, done.stdout, done.stderr) == (0, "two\nlines for me\n", "")


def test_fields_go_there_and_come_back(gateway: str, run_here: Run) -> None:
    with (
        weft.Connection(gateway) as connection,
        connection.subscribe("asked.fields", lambda m: m.respond({"twice": 2 * m["n"]})),
    ):
        done = run_here("req", "asked.fields", "--field", "n:int32=21")
    assert (done.returncode, done.stdout) == (0, "twice=42\n")


def test_json_has_the_whole_answer(gateway: str, run_here: Run) -> None:
    with (
        weft.Connection(gateway) as connection,
        connection.subscribe("asked.json", lambda m: m.respond({"ok": True})),
    ):
        done = run_here("req", "asked.json", "--json")
    assert json.loads(done.stdout)["message"] == {"ok": True}


@pytest.mark.usefixtures("gateway")
def test_nobody_there_is_told_at_once(run_here: Run) -> None:
    done = run_here("req", "asked.nobody", "x", "--timeout", "1000")
    assert done.returncode == 1
    assert done.stderr.startswith("weft: not known: ")
    assert "asked.nobody" in done.stderr
    assert done.stderr.count("\n") == 1


def test_no_answer_in_time_is_a_failure(gateway: str, run_here: Run) -> None:
    with weft.Connection(gateway) as connection, connection.subscribe("asked.mute"):
        done = run_here("req", "asked.mute", "x", "--timeout", "0.1")
    assert done.returncode == 1
    assert done.stderr.startswith("weft: timed out: ")


def test_many_answer(gateway: str, run_here: Run) -> None:
    with (
        weft.Connection(gateway) as one,
        weft.Connection(gateway) as two,
        one.subscribe("asked.all", lambda m: m.respond("one")),
        two.subscribe("asked.all", lambda m: m.respond("two")),
    ):
        done = run_here("req", "asked.all", "--many", "--count", "2", "--timeout", "10")
    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == ["one", "two"]


@pytest.mark.req("HUB-7")
@pytest.mark.parametrize("options", [[], ["--many", "--count", "1", "--timeout", "10"]])
def test_a_masked_request_does_not_say_who_asks(
    gateway: str, run_here: Run, options: list[str]
) -> None:
    with (
        weft.Connection(gateway) as connection,
        connection.subscribe("asked.masked", lambda m: m.respond(f"number {m.publisher}")),
    ):
        done = run_here("req", "asked.masked", "x", "--masked", *options)
    assert (done.returncode, done.stdout) == (0, "number 0\n")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_answer_that_cannot_be_read_hides_no_other(
    gateway: str, run_here: Run, options: list[str]
) -> None:
    broken = weft.Message.from_body(b"\x01")
    with (
        weft.Connection(gateway) as one,
        weft.Connection(gateway) as two,
        one.subscribe("asked.broken", lambda m: m.respond(broken)),
        two.subscribe("asked.broken", lambda m: m.respond("whole")),
    ):
        done = run_here("req", "asked.broken", "--many", "--count", "2", *options)
    assert len(done.stdout.splitlines()) == 2
    assert "whole" in done.stdout
    assert ("error" if options else "<cannot be read: ") in done.stdout
    assert done.stderr == "weft: bad message: 1 of 2 answers cannot be read\n"
    assert done.returncode == 1


@pytest.mark.usefixtures("gateway")
def test_many_of_whom_nobody_answers_is_a_failure(run_here: Run) -> None:
    done = run_here("req", "asked.none", "--many", "--timeout", "0.1")
    assert done.returncode == 1
    assert done.stderr == "weft: timed out: no answer from asked.none within 0.1 s\n"


@pytest.mark.parametrize("option", ["--count", "--quiet"])
def test_options_for_many_need_many(run_here: Run, option: str) -> None:
    done = run_here("req", "a", option, "1")
    assert done.returncode == 2
    assert "--count and --quiet need --many" in done.stderr
