"""A worker that makes no turns is replaced; one that merely could not run is not."""

import os
import signal
import time
import urllib.error
from collections.abc import Callable

from tests.attacks.gateway_process import GatewayProcess, eventually, is_running
from tests.attacks.stranger import Stranger, connect

from weft.wire.frames import Kind

Serve = Callable[..., GatewayProcess]
# The least that there is, and longer than that.
WATCHDOG_S = 3.0
STOPPED_S = 6.0


def readiness(gateway: GatewayProcess) -> tuple[int, str]:
    try:
        return 200, gateway.get("/readyz").decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def test_a_worker_that_hangs_is_killed_and_replaced(serve: Serve) -> None:
    gateway = serve({"services": ["one", "two"], "watchdog_s": WATCHDOG_S})
    hung, other = gateway.worker("one"), gateway.worker("two")
    os.kill(hung, signal.SIGSTOP)
    # Whoever comes meanwhile waits, and is served by the next.
    with Stranger(gateway.port, connect(b"one")) as waiting:
        eventually(lambda: not is_running(hung), lambda: gateway.log)
        assert waiting.hear(Kind.WELCOME)
    service = gateway.service("one")
    assert (service["hangs"], service["restarts"]) == (1, 1)
    assert f"worker {hung} made no turn for 3.0 s, killing it" in gateway.log
    assert 'weft_worker_hangs_total{service="one"} 1.0' in gateway.get("/metrics").decode()
    assert gateway.worker("two") == other
    eventually(lambda: readiness(gateway) == (200, "ready\n"), lambda: gateway.log)


def test_a_gateway_says_that_a_worker_hangs_until_it_is_replaced(serve: Serve) -> None:
    gateway = serve({"services": ["one", "two"], "watchdog_s": 0})
    hung = gateway.worker("one")
    os.kill(hung, signal.SIGSTOP)
    eventually(
        lambda: readiness(gateway) == (503, "not responding: one\n"), lambda: readiness(gateway)
    )
    # Without a watchdog it is waited for.
    os.kill(hung, signal.SIGCONT)
    eventually(lambda: readiness(gateway) == (200, "ready\n"), lambda: readiness(gateway))
    assert gateway.service("one")["restarts"] == 0


def test_a_gateway_that_is_suspended_as_a_whole_kills_no_worker(serve: Serve) -> None:
    gateway = serve({"services": ["one", "two"], "watchdog_s": WATCHDOG_S})
    processes = [gateway.process.pid, gateway.worker("one"), gateway.worker("two")]
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    # For no condition but the time: the clock of the front runs on meanwhile.
    time.sleep(STOPPED_S)
    # The front first: its clock says that it heard nothing for too long.
    for pid in processes:
        os.kill(pid, signal.SIGCONT)
    with Stranger(gateway.port, connect(b"one")) as client:
        assert client.hear(Kind.WELCOME)
    services = [gateway.service("one"), gateway.service("two")]
    assert [(each["restarts"], each["hangs"]) for each in services] == [(0, 0)] * 2
    assert [each["pid"] for each in services] == processes[1:]
