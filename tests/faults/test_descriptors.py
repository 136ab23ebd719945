"""Too few descriptors: whoever is connected goes on, newcomers wait or are turned away."""

import resource
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from tests.attacks.bystander import Bystander
from tests.attacks.gateway_process import GatewayProcess, descriptors, eventually
from tests.attacks.stranger import CONNECT, Stranger, error_name

from weft.wire.frames import Kind

Serve = Callable[..., GatewayProcess]


@contextmanager
def no_more_than(pid: int, count: int) -> Iterator[None]:
    """Let a process open only so many descriptors beyond those it has, while a block runs."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (descriptors(pid) + count, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


@pytest.mark.req("HUB-19")
def test_a_front_without_descriptors_pauses_and_then_serves_who_waited(serve: Serve) -> None:
    gateway = serve()
    with ExitStack() as stack:
        bystander = stack.enter_context(Bystander(gateway))
        with no_more_than(gateway.process.pid, 5), bystander.talking():
            silent = [stack.enter_context(Stranger(gateway.port, b"")) for _ in range(20)]
            eventually(lambda: "accepting paused" in gateway.log, "nothing pauses")
            waiting = [stack.enter_context(Stranger(gateway.port)) for _ in range(50)]
        for stranger in waiting:
            assert stranger.hear(Kind.WELCOME)
        for stranger in silent:
            stranger.send(CONNECT)
            assert stranger.hear(Kind.WELCOME)
        assert gateway.status()["front"]["pauses"] > 0
        bystander.talk()
        bystander.check()


def test_a_worker_without_descriptors_loses_newcomers_alone(serve: Serve) -> None:
    gateway = serve()
    with ExitStack() as stack:
        bystander = stack.enter_context(Bystander(gateway))
        with no_more_than(gateway.worker(), 5), bystander.talking():
            crowd = [stack.enter_context(Stranger(gateway.port)) for _ in range(20)]
            answers = Counter(stranger.is_welcome() for stranger in crowd)
        assert answers[True] > 0
        assert answers[False] > 0
        assert "connections were lost" in gateway.log
        assert stack.enter_context(Stranger(gateway.port)).hear(Kind.WELCOME)
        assert gateway.connections() == 2 + answers[True] + 1
        bystander.talk()
        bystander.check()
        assert gateway.service()["restarts"] == 0


def test_no_more_are_let_in_than_a_worker_has_descriptors_for(serve: Serve) -> None:
    limit = 200
    gateway = serve(descriptors_max=limit)
    with Bystander(gateway) as bystander:
        answers: Counter[str] = Counter()
        with ExitStack() as stack:
            for stranger in [stack.enter_context(Stranger(gateway.port)) for _ in range(200)]:
                frame = stranger.hear()
                answers["" if frame.kind == Kind.WELCOME else error_name(frame)] += 1
        assert set(answers) == {"", "Overloaded"}
        assert descriptors(gateway.worker()) < limit
        eventually(lambda: gateway.status()["connections"] == 2, gateway.status)
        with Stranger(gateway.port) as newcomer:
            assert newcomer.hear(Kind.WELCOME)
        bystander.talk()
        bystander.check()
