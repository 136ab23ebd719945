import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.gateway_lines import Served, line, until

import weft
from weft.cli.commands.trace import lines
from weft.cli.output.mesh_rows import (
    OnwardRow,
    ResponderRow,
    ShareRow,
    SubscriptionRow,
    TraceGatewayRow,
    TracePage,
)

Run = Callable[..., subprocess.CompletedProcess[str]]
Line = dict[str, Served]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    with line(tmp_path_factory.mktemp("line")) as made:
        yield made


def traced(run_here: Run, gateway: Served, subject: str) -> Any:
    done = run_here("trace", subject, "--json", "--gateway", gateway.address)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def await_places(run_here: Run, gateway: Served, subject: str, *states: str) -> None:
    """Wait until a trace comes to so many gateways, and they are so."""
    until(
        lambda: (
            [place["state"] for place in traced(run_here, gateway, subject)["gateways"]]
            == [*states]
        )
    )


def test_every_link_and_subscription_on_the_way_is_told(three: Line, run_here: Run) -> None:
    with (
        weft.Connection(three["rome"].address, name="dashboard") as there,
        weft.Connection(three["paris"].address, name="audit") as between,
        weft.Connection(three["london"].address, name="local") as here,
    ):
        there.subscribe("trace.>", lambda _: None)
        between.subscribe("trace.*", lambda _: None, group="g")
        here.subscribe("trace.a", lambda _: None)
        here.flush()
        await_places(run_here, three["london"], "trace.a", "here", "answered", "answered")
        until(lambda: traced(run_here, three["london"], "trace.a")["groups"])
        done = run_here("trace", "trace.a", "--gateway", three["london"].address)
    assert (done.returncode, done.stderr) == (0, "")
    shown = done.stdout.splitlines()
    assert shown[:2] == [
        "trace.a, published at london",
        "london (here): 1 subscription: trace.a of local",
    ]
    assert shown[2].startswith("  london → paris")
    assert shown[2].endswith(": 1 subscription: trace.* of audit (group g, next)")
    assert shown[3].startswith("    paris → rome")
    assert shown[3].endswith(": 1 subscription: trace.> of dashboard")
    assert shown[4:] == [
        "group g: the next message goes to audit at paris",
        "a request would go to local at london",
    ]


def test_a_gateway_that_only_passes_it_on_says_so(three: Line, run_here: Run) -> None:
    with weft.Connection(three["rome"].address, name="dashboard") as there:
        there.subscribe("passed.on", lambda _: None)
        there.flush()
        await_places(run_here, three["london"], "passed.on", "here", "answered", "answered")
        done = run_here("trace", "passed.on", "--gateway", three["london"].address)
    shown = done.stdout.splitlines()
    assert shown[1] == "london (here): no subscription"
    assert shown[2].endswith(": passes it on")
    assert shown[4] == "a request would go to dashboard at rome"


def test_where_nobody_listens_it_says_so_and_that_is_no_failure(three: Line, run_here: Run) -> None:
    done = run_here("trace", "for.nobody", "--gateway", three["london"].address)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "for.nobody, published at london",
        "london (here): no subscription",
        "it has no subscribers",
    ]


def test_a_cut_in_the_middle_is_told_with_the_reason(tmp_path: Path, run_here: Run) -> None:
    with (
        line(tmp_path) as made,
        weft.Connection(made["rome"].address, name="dashboard") as there,
    ):
        there.subscribe("cut.off", lambda _: None, group="g")
        there.flush()
        await_places(run_here, made["london"], "cut.off", "here", "answered", "answered")
        made["paris"].die()
        await_places(run_here, made["london"], "cut.off", "here", "dropped")
        done = run_here("trace", "cut.off", "--gateway", made["london"].address)
    assert done.returncode == 0
    assert done.stdout.splitlines()[2:] == [
        "  london → rome: dropped: no path to it from london",
        "no subscribers are known: some gateways have not answered",
        "group g: the next message goes to rome, once it can be reached",
    ]


def test_a_gateway_without_a_mesh_tells_of_its_own(gateway: str, run_here: Run) -> None:
    with weft.Connection(gateway, service="trace-alone", name="only") as connection:
        connection.subscribe("a.>", lambda _: None)
        connection.flush()
        done = run_here("trace", "a.b", "--service", "trace-alone")
    assert done.stdout.splitlines() == [
        "a.b, published at tested",
        "tested (here): 1 subscription: a.> of only",
        "a request would go to only at tested",
    ]


@pytest.mark.usefixtures("gateway")
@pytest.mark.parametrize(
    ("subject", "code", "said"),
    [("a.*", 2, "bad subject"), ("_WEFT.ask.status", 1, "reserved")],
)
def test_what_cannot_be_published_to_is_an_error(
    run_here: Run, subject: str, code: int, said: str
) -> None:
    done = run_here("trace", subject)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(f"weft: {said}: ")


def test_a_service_is_not_started_by_a_trace(gateway: str, run_here: Run) -> None:
    done = run_here("trace", "a", "--service", "unheard-of")
    assert done.returncode == 1
    assert done.stderr.startswith("weft: no such service: ")
    assert gateway in done.stderr


def test_names_of_others_are_shown_and_never_obeyed() -> None:
    page = TracePage(
        subject="a",
        gateway="x",
        is_heard=True,
        responder=ResponderRow(gateway="y", name=""),
        groups=[ShareRow(group="g\n", gateway="y", name="")],
        gateways=[
            TraceGatewayRow(
                name="x",
                state="here",
                is_wanted=True,
                is_kept=True,
                subscriptions=[
                    SubscriptionRow(
                        name="\x1b[2J", pattern="a", policy="cut", listen_only=True, is_behind=True
                    )
                ],
                more=2,
                onward=[OnwardRow(name="y", number=2, rtt_ms=1.234)],
            ),
            TraceGatewayRow(name="y", number=2, by="x", state="silent", text="no answer\r"),
        ],
    )
    assert lines(page) == [
        "a, published at x",
        (
            "x (here): 3 subscriptions: a of \\x1b[2J (listens only, behind, cut) and 2 more;"
            " kept in the journal"
        ),
        "  x → y (1.2 ms): no answer\\r",
        "group g\\n: the next message goes to y",
        "a request would go to y",
    ]
