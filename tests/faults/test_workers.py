"""A worker that is killed or stands still: its service suffers a while, the others not at all."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.attacks.gateway_process import GatewayProcess, descriptors, eventually, is_running
from tests.attacks.stranger import CONNECT, Stranger, connect, message, subscribe
from tests.faults.stream import streaming

from weft.wire.frames import Kind

SERVICES = ("one", "two", "three")
Serve = Callable[..., GatewayProcess]


def await_restarts(gateway: GatewayProcess, count: int) -> None:
    """Wait until the worker of service one was started again so often."""
    eventually(lambda: gateway.status()["services"]["one"]["restarts"] == count, gateway.status)


@pytest.mark.req("MM-14")
async def test_killing_one_worker_loses_nothing_of_the_others(serve: Serve) -> None:
    gateway = serve({"services": SERVICES})
    async with streaming(gateway.address, *SERVICES) as (one, two, three):
        killed = await asyncio.to_thread(gateway.worker, "one")
        os.kill(killed, signal.SIGKILL)
        await two.advance()
        await three.advance()
        # Its clients come back by themselves, and go on.
        await one.advance()
    assert two.is_exact()
    assert three.is_exact()
    assert (two.connects, three.connects, two.breaks, three.breaks) == (1, 1, 0, 0)
    assert one.heard == sorted(set(one.heard))
    assert one.connects == 2
    service = gateway.service("one")
    assert service["restarts"] == 1
    assert service["pid"] != killed
    assert [gateway.service(name)["restarts"] for name in ("two", "three")] == [0, 0]
    assert not is_running(killed)


@pytest.mark.req("MM-15")
def test_sockets_move_to_their_service_and_no_byte_is_lost(serve: Serve) -> None:
    gateway = serve()
    front, worker = gateway.process.pid, gateway.worker()
    with ExitStack() as stack:
        listener = stack.enter_context(Stranger(gateway.port, CONNECT + subscribe(b"moved.>")))
        listener.hear_until_pong()
        in_front, in_worker = descriptors(front), descriptors(worker)
        for number in range(100):
            # All at once with the greeting: most of it comes before the socket has moved.
            said = [message(b"moved.%d" % number, b"%d" % each) for each in range(200)]
            stack.enter_context(Stranger(gateway.port, CONNECT + b"".join(said)))
        heard: dict[bytes, list[int]] = {}
        for _ in range(100 * 200):
            frame = listener.hear(Kind.MESSAGE)
            heard.setdefault(frame.subject, []).append(int(frame.body))
        assert len(heard) == 100
        assert all(numbers == list(range(200)) for numbers in heard.values())
        assert descriptors(worker) == in_worker + 100
        eventually(lambda: descriptors(front) <= in_front, lambda: f"{descriptors(front)} are open")


@pytest.mark.req("MM-15")
def test_whoever_comes_while_a_worker_starts_again_is_served(serve: Serve) -> None:
    gateway = serve({"services": SERVICES})
    killed = gateway.worker("one")
    os.kill(killed, signal.SIGKILL)
    strangers = [Stranger(gateway.port, connect(b"one")) for _ in range(50)]
    for stranger in strangers:
        with stranger:
            assert stranger.hear(Kind.WELCOME)
    assert gateway.service("one")["restarts"] == 1


def test_a_worker_that_is_killed_again_and_again_comes_back(serve: Serve) -> None:
    gateway = serve({"services": SERVICES})
    for number in range(1, 4):
        os.kill(gateway.worker("one"), signal.SIGKILL)
        await_restarts(gateway, number)
        with Stranger(gateway.port, connect(b"one")) as stranger:
            assert stranger.hear(Kind.WELCOME)
    assert gateway.log.count("starting another") == 3


@pytest.mark.req("MM-14")
async def test_a_worker_that_stands_still_delays_no_other(serve: Serve) -> None:
    gateway = serve({"services": SERVICES, "watchdog_s": 0})
    async with streaming(gateway.address, *SERVICES) as (one, two, three):
        stopped = await asyncio.to_thread(gateway.worker, "one")
        os.kill(stopped, signal.SIGSTOP)
        try:
            heard = len(one.heard)
            await two.advance(3000)
            await three.advance(3000)
            status = await asyncio.to_thread(gateway.status)
            states = [status["services"][name]["state"] for name in SERVICES]
            assert states == ["silent", "up", "up"]
            # Newcomers to others are let in; those to this one wait.
            waiting = await asyncio.to_thread(Stranger, gateway.port, connect(b"one"))
            with await asyncio.to_thread(Stranger, gateway.port, connect(b"two")) as newcomer:
                assert await asyncio.to_thread(newcomer.hear, Kind.WELCOME)
            # What was on its way when it stopped may still have been heard.
            assert len(one.heard) < heard + 3000
        finally:
            os.kill(stopped, signal.SIGCONT)
        with waiting:
            assert await asyncio.to_thread(waiting.hear, Kind.WELCOME)
        await one.advance()
    assert [stream.is_exact() for stream in (one, two, three)] == [True] * 3
    assert [stream.connects for stream in (one, two, three)] == [1] * 3
    assert gateway.service("one")["restarts"] == 0


@pytest.mark.req("MM-14")
async def test_a_worker_that_stands_still_does_not_hold_up_the_drain(serve: Serve) -> None:
    gateway = serve({"services": SERVICES, "drain_s": 1.0})
    workers = [await asyncio.to_thread(gateway.worker, name) for name in SERVICES]
    os.kill(workers[0], signal.SIGSTOP)
    await asyncio.to_thread(gateway.end)
    assert [is_running(pid) for pid in workers] == [False] * 3


@pytest.mark.req("MM-14")
async def test_a_worker_that_is_told_to_end_drains_and_is_started_again(serve: Serve) -> None:
    gateway = serve({"services": SERVICES})
    async with streaming(gateway.address, *SERVICES) as (one, two, three):
        ended = await asyncio.to_thread(gateway.worker, "one")
        os.kill(ended, signal.SIGTERM)
        await asyncio.to_thread(await_restarts, gateway, 1)
        await asyncio.gather(*(stream.advance() for stream in (one, two, three)))
    assert [stream.is_exact() for stream in (two, three)] == [True, True]
    assert one.heard == sorted(set(one.heard))
    assert one.connects == 2
    service = gateway.service("one")
    assert service["restarts"] == 1
    assert service["pid"] != ended


@pytest.mark.req("MM-15")
async def test_a_front_that_stands_still_delays_nobody_who_is_connected(serve: Serve) -> None:
    gateway = serve({"services": SERVICES})
    async with streaming(gateway.address, *SERVICES) as streams:
        os.kill(gateway.process.pid, signal.SIGSTOP)
        try:
            await asyncio.gather(*(stream.advance(3000) for stream in streams))
            waiting = await asyncio.to_thread(Stranger, gateway.port, connect(b"one"))
        finally:
            os.kill(gateway.process.pid, signal.SIGCONT)
        with waiting:
            assert await asyncio.to_thread(waiting.hear, Kind.WELCOME)
    assert [stream.is_exact() for stream in streams] == [True] * 3


def test_workers_end_by_themselves_when_their_front_is_killed(serve: Serve) -> None:
    gateway = serve({"services": SERVICES, "drain_s": 1.0})
    workers = [gateway.worker(name) for name in SERVICES]
    with Stranger(gateway.port, connect(b"one")) as client:
        assert client.hear(Kind.WELCOME)
        gateway.process.kill()
        gateway.process.wait()
        assert client.hear(Kind.GOODBYE)
        # It ignores the goodbye: its worker ends all the same, a little later.
        eventually(lambda: not any(is_running(pid) for pid in workers), f"orphans: {workers}")
        assert client.hear_all() == []


def test_a_front_that_is_killed_while_a_worker_starts_leaves_no_orphans(serve: Serve) -> None:
    gateway = serve({"services": SERVICES})
    os.kill(gateway.worker("one"), signal.SIGKILL)
    gateway.process.kill()
    gateway.process.wait()
    eventually(lambda: not writers_of(gateway.log_file), lambda: writers_of(gateway.log_file))


def writers_of(log: Path) -> list[str]:
    """The processes whose errors go to a log: a gateway and all its workers."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            is_writer = process.name.isdecimal() and (process / "fd" / "2").readlink() == log
        except OSError:
            # It has ended meanwhile, or is not ours to look at.
            continue
        if is_writer:
            found.append(process.name)
    return found
