import asyncio
import json
import os
import pty
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.broker.locksmith import key_of, record
from tests.cli.gateway_lines import Served, line, served, until

import weft
from weft.cli.output.mesh_rows import NodeRow
from weft.cli.output.mesh_tables import counts, state, tree
from weft.cli.output.streams import console
from weft.gateway.keys.key_file import change_keys

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., AbstractAsyncContextManager[asyncio.subprocess.Process]]
Line = dict[str, Served]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    with line(tmp_path_factory.mktemp("line")) as made:
        yield made


def asked(run_here: Run, gateway: Served, *arguments: str) -> Any:
    done = run_here("mesh", "--json", "--gateway", gateway.address, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def await_states(run_here: Run, gateway: Served, *states: str) -> None:
    """Wait until a gateway says of those in the mesh, in its order, that they are so."""
    until(lambda: [node["state"] for node in asked(run_here, gateway)["nodes"]] == [*states])


def test_gateways_and_links_are_shown(three: Line, run_here: Run) -> None:
    london = three["london"]
    await_states(run_here, london, "here", "linked", "reached")
    done = run_here("mesh", "--gateway", london.address)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:3] == ["mesh as gateway london sees it: 3 gateways are there", "", "gateways"]
    assert [row.split()[:2] for row in lines[4:7]] == [
        ["london", "here"],
        ["paris", "linked"],
        ["rome", "2"],
    ]
    assert " 2 links away, through paris " in lines[6]
    assert "links of london" in lines
    assert lines[-1].startswith("messages of others: ")


def test_what_cannot_be_reached_is_shown_with_the_reason(three: Line, run_here: Run) -> None:
    london = three["london"]
    until(lambda: asked(run_here, london)["targets"])
    lines = run_here("mesh", "--gateway", london.address).stdout.splitlines()
    row = lines[lines.index("not reached") + 2]
    assert row.startswith("127.0.0.1:2 ")
    assert "refused" in row


def test_the_tree_of_ways_is_shown(three: Line, run_here: Run) -> None:
    await_states(run_here, three["rome"], "here", "linked", "reached")
    done = run_here("mesh", "--tree", "--gateway", three["rome"].address)
    assert [row.split()[-1] for row in done.stdout.splitlines()] == ["rome", "paris", "london"]
    assert done.stdout.splitlines()[2].startswith("    ")


def test_interest_and_listeners_of_all_gateways_are_shown(three: Line, run_here: Run) -> None:
    london = three["london"]
    with (
        weft.Connection(three["rome"].address, name="dashboard") as there,
        weft.Connection(london.address, name="audit") as here,
    ):
        there.subscribe("mesh.>", lambda _: None)
        here.subscribe("mesh.*", lambda _: None, group="g")
        here.flush()
        until(lambda: len(asked(run_here, london, "--listeners", "mesh.a")["gateways"]) == 1)
        until(lambda: len(asked(run_here, london, "--interest")["interest"]) == 2)
        interest = run_here("mesh", "--interest", "--gateway", london.address).stdout
        shown = run_here("mesh", "--listeners", "mesh.a", "--gateway", london.address)
    assert [row.split() for row in interest.splitlines()[2:]] == [
        ["london", "mesh.*", "g", "yes"],
        ["rome", "mesh.>", "yes"],
    ]
    lines = shown.stdout.splitlines()
    assert lines[0] == "connections of london that listen to mesh.a"
    assert lines[2].split()[1:] == ["audit", "mesh.*", "g", "cut", "in", "time"]
    assert lines[4] == "gateways that want mesh.a"
    assert lines[6].split() == ["rome", "mesh.>", "2"]


def test_where_nobody_listens_it_says_so(three: Line, run_here: Run) -> None:
    done = run_here("mesh", "--listeners", "nobody.here", "--gateway", three["paris"].address)
    assert (done.returncode, done.stdout) == (0, "nobody.here has no subscribers\n")


def test_a_gateway_that_is_gone_is_shown_as_lost(tmp_path: Path, run_here: Run) -> None:
    with line(tmp_path) as made:
        await_states(run_here, made["london"], "here", "linked", "reached")
        made["paris"].die()
        await_states(run_here, made["london"], "here", "lost", "lost")
        until(
            lambda: (
                made["paris"].address
                in {target["address"] for target in asked(run_here, made["london"])["targets"]}
            )
        )
        shown = run_here("mesh", "--gateway", made["london"].address).stdout
    assert "london sees it: 1 gateway is there\n" in shown
    assert " lost for " in shown
    assert made["paris"].address in shown.partition("not reached")[2]


def test_a_gateway_without_a_mesh_is_alone(gateway: str, run_here: Run) -> None:
    with weft.Connection(gateway, service="mesh-alone"):
        done = run_here("mesh", "--service", "mesh-alone")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "gateway tested is alone"
    assert lines[4].split()[:2] == ["tested", "here"]
    assert len(lines) == 5


@pytest.mark.parametrize("command", [["mesh"], ["trace", "a"]])
def test_a_client_key_is_refused(
    tmp_path: Path, run_here: Run, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    change_keys(tmp_path, lambda _: (record("web", "client"), record("quotes")))
    with served("--name", "locked", "--data", str(tmp_path)) as locked:
        asking = (*command, "--service", "weather", "--gateway", locked.address)
        monkeypatch.setenv("WEFT_KEY", key_of("quotes"))
        weft.Connection(locked.address, service="weather", key=key_of("quotes")).close()
        done = run_here(*asking)
        assert (done.returncode, done.stderr) == (0, "")
        monkeypatch.setenv("WEFT_KEY", key_of("web"))
        done = run_here(*asking)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("weft: not allowed: ")


@pytest.mark.usefixtures("gateway")
def test_only_one_thing_is_shown_at_a_time(run_here: Run) -> None:
    done = run_here("mesh", "--tree", "--interest")
    assert done.returncode == 2
    assert "ask for one of --tree, --interest and --listeners" in done.stderr


@pytest.mark.usefixtures("gateway")
def test_listeners_of_what_is_no_subject_are_an_error(run_here: Run) -> None:
    done = run_here("mesh", "--listeners", "a.*")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("weft: bad subject: ")


@pytest.mark.usefixtures("gateway")
async def test_watched_in_a_pipe_it_is_shown_again_and_again(started: Start) -> None:
    async with started("mesh", "--watch", "--json") as process:
        assert process.stdout is not None
        names = [json.loads(await process.stdout.readline())["gateway"] for _ in range(2)]
        assert names == ["tested", "tested"]
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
        assert (process.returncode, b"Traceback" in err) == (130, False)


@pytest.mark.usefixtures("gateway")
async def test_watched_on_a_terminal_it_is_drawn_over(started: Start) -> None:
    master, terminal = pty.openpty()
    async with started("mesh", "--watch", stdout=terminal) as process:
        os.close(terminal)
        shown = ""
        while shown.count("gateways") < 2:
            shown += (await asyncio.to_thread(os.read, master, 65_536)).decode()
        process.send_signal(signal.SIGINT)
        while "\x1b[?1049l" not in shown:
            shown += (await asyncio.to_thread(os.read, master, 65_536)).decode()
        assert await process.wait() == 130
    os.close(master)


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (NodeRow(state="linked"), "linked"),
        (NodeRow(state="reached", hops=3, through="b\x1b[1m"), "3 links away, through b\\x1b[1m"),
        (NodeRow(state="lost", lost_s=65.2), "lost for 1 min 5 s"),
        (NodeRow(state="linked", is_draining=True), "draining"),
        (NodeRow(state="left", is_draining=True), "left"),
    ],
)
def test_a_state_is_told_in_words(row: NodeRow, text: str) -> None:
    assert state(row) == text


def test_whoever_hangs_on_one_that_is_not_listed_is_in_the_tree_all_the_same() -> None:
    rows = [
        NodeRow(name="a", state="here"),
        NodeRow(name="c", state="reached", hops=2, by="b"),
        NodeRow(name="d", state="leaving"),
    ]
    target = console()
    with target.capture() as captured:
        target.print(tree(rows))
    assert [row.strip("├└─ ") for row in captured.get().split("\n")] == [
        *("a", "c", "d (leaving)", "")
    ]


def test_what_was_not_counted_is_not_told() -> None:
    assert counts({"sent": 1200, "lost": 0, "passed_on": 2, "refused": {"Loop": 3}}) == (
        "messages of others: 1,200 sent, 2 passed on, 3 refused as Loop"
    )
    assert counts({"sent": 0, "refused": {}}) == "messages of others: none yet"
