"""Thousands of connections at once or one after the other, none of which wants anything."""

import resource
import socket
import struct
from collections.abc import Iterator

import pytest
from tests.attacks.bystander import Bystander
from tests.attacks.gateway_process import descriptors, eventually, rss_bytes
from tests.attacks.siege import Siege
from tests.attacks.stranger import CONNECT, message, subscribe

from weft.wire.frames import Kind, encode

SETTINGS = {"limits.greeting_s": 2.0}
CROWD = 5000
MIB = 1 << 20
# Closing resets the connection, at once and without a trace.
RESET = struct.pack("ii", 1, 0)
NO_RESET = struct.pack("ii", 0, 0)


@pytest.fixture(autouse=True)
def _many_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def dial(siege: Siege, sent: bytes) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", siege.port))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    sock.sendall(sent)
    return sock


@pytest.mark.req("HUB-19")
def test_half_greetings_by_the_thousand_hold_up_nobody(siege: Siege) -> None:
    crowd: list[socket.socket] = []
    try:
        with siege.bystander.talking():
            crowd += [dial(siege, CONNECT[: number % len(CONNECT)]) for number in range(CROWD)]
        # Now that they are all there, whoever speaks is still let in at once.
        for _ in range(5):
            with Bystander(siege.gateway) as newcomer:
                newcomer.talk()
                newcomer.check()
        assert siege.gateway.status()["front"]["pending"] > 0
        with siege.bystander.talking():
            eventually(
                lambda: (
                    siege.counted()["front TooSlow"] + siege.counted()["front Overloaded"] == CROWD
                ),
                siege.counted,
            )
    finally:
        for sock in crowd:
            sock.close()
    # A flood of refusals is a line now and then, not a line each.
    assert len(siege.gateway.log.splitlines()) < CROWD / 10


def churn(siege: Siege, count: int) -> None:
    """Connections that come and go in every way there is."""
    said = (
        *(b"", CONNECT[:3], CONNECT[:-1], CONNECT, CONNECT + encode(Kind.GOODBYE)),
        *(CONNECT + subscribe(b"churn.>"), CONNECT + message(b"a.b")[:-1], CONNECT + bytes(32)),
    )
    for number in range(count):
        with dial(siege, said[number % len(said)]) as sock:
            if number % 3:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_RESET)


@pytest.mark.req("HUB-20")
def test_connections_that_come_and_go_leave_nothing_behind(siege: Siege) -> None:
    front = siege.gateway.process.pid
    processes = (front, siege.worker)

    def is_calm() -> bool:
        return siege.gateway.connections() == 2 and siege.gateway.status()["front"]["pending"] == 0

    def held() -> list[int]:
        eventually(is_calm, siege.gateway.status)
        return [rss_bytes(pid) for pid in processes]

    churn(siege, 1000)
    first = held()
    open_before = [descriptors(pid) for pid in processes]
    with siege.bystander.talking():
        churn(siege, CROWD - 1000)
    last = held()
    eventually(
        lambda: all(
            descriptors(pid) <= before for pid, before in zip(processes, open_before, strict=True)
        ),
        lambda: f"{open_before}, then {[descriptors(pid) for pid in processes]}",
    )
    grown = [after - before for before, after in zip(first, last, strict=True)]
    assert max(grown) < 6 * MIB, [each / MIB for each in grown]
    assert siege.gateway.service()["status"]["subscriptions"] == 2


@pytest.mark.req("HUB-20")
def test_whoever_says_much_and_resets_is_forgotten(siege: Siege) -> None:
    much = b"".join(message(b"much.%d" % (n % 5), bytes(5000)) for n in range(600))
    with siege.bystander.talking():
        for _ in range(40):
            with dial(siege, CONNECT + subscribe(b"much.>")) as sock:
                sock.sendall(much)
    eventually(lambda: siege.gateway.connections() == 2, siege.gateway.status)
    assert siege.gateway.service()["status"]["subscriptions"] == 2
