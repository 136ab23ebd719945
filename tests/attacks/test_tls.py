"""A port that speaks TLS, spoken to in every other way."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.attacks.gateway_process import GatewayProcess, descriptors, eventually, rss_bytes
from tests.attacks.readers import numbered
from tests.attacks.siege import Siege
from tests.attacks.stranger import CONNECT, Stranger, message, subscribe

from weft.wire.frames import Kind

MIB = 1 << 20
BOUND = 1 << 20


@pytest.fixture(scope="module")
def gateway(
    certificates: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    settings = {
        "tls.cert": str(certificates / "first.pem"),
        "tls.key": str(certificates / "first.key"),
        "limits.greeting_s": 1.0,
        "limits.outbox_bytes": BOUND,
        "limits.outbox_age_s": 1.0,
    }
    with GatewayProcess(tmp_path_factory.mktemp("gateway"), settings) as running:
        yield running


class EncryptedStranger(Stranger):
    """A stranger that has shaken hands before it says anything."""

    def __init__(self, gateway: GatewayProcess, greeting: bytes = CONNECT) -> None:
        super().__init__(gateway.port, b"")
        assert gateway.tls is not None
        self.socket: socket.socket | ssl.SSLSocket = gateway.tls.wrap_socket(self.socket)
        self.send(greeting)


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (CONNECT, "BadGreeting"),
        (b"GET /status HTTP/1.1\r\n\r\n", "BadGreeting"),
        (bytes(100), "BadFrame"),
        (b"\xff" * 100, "FrameTooBig"),
    ],
    ids=["a greeting", "HTTP", "zeros", "ones"],
)
def test_what_is_not_encrypted_is_turned_away(siege: Siege, sent: bytes, error: str) -> None:
    assert siege.stranger(sent).hear_end() == error
    siege.await_counts(**{f"front_{error}": 1})


def test_a_handshake_of_garbage_is_turned_away(siege: Siege) -> None:
    siege.stranger(b"\x16\x03\x01\x00\x64" + bytes(100)).hear_bytes()
    siege.await_counts(front_BadGreeting=1)


def test_handshakes_that_are_never_finished_hold_up_nobody(siege: Siege) -> None:
    hello = b"\x16\x03\x01\x02\x00\x01"
    front = siege.gateway.process.pid
    open_before = descriptors(front)
    slow = [siege.stranger(hello) for _ in range(300)]
    silent = [siege.stranger(b"") for _ in range(300)]
    with siege.bystander.talking():
        for stranger in slow + silent:
            stranger.hear_bytes()
    siege.await_counts(front_TooSlow=600)
    eventually(lambda: descriptors(front) <= open_before, "descriptors are left open")


@pytest.mark.parametrize(
    ("sent", "counted"),
    [
        (bytes(32), {"front_BadFrame": 1}),
        (CONNECT[:10], {"front_TooSlow": 1}),
        (b"\x16\x03\x01\x00\x64" + bytes(100), {"front_BadGreeting": 1}),
        (CONNECT + bytes(32), {"refused_BadFrame": 1, "ended_BadFrame": 1}),
    ],
    ids=["no greeting", "half a greeting", "TLS in TLS", "garbage after the greeting"],
)
def test_what_is_wrong_within_the_encryption_is_refused_as_without(
    siege: Siege, sent: bytes, counted: dict[str, int]
) -> None:
    with EncryptedStranger(siege.gateway, sent) as stranger:
        (error,) = {why.partition("_")[2] for why in counted}
        assert stranger.hear_end() == error
    siege.await_counts(**counted)


def test_a_reader_that_stops_costs_both_processes_at_most_its_bound(siege: Siege) -> None:
    processes = (siege.gateway.process.pid, siege.worker)
    with EncryptedStranger(siege.gateway) as publisher:
        readers = [
            EncryptedStranger(siege.gateway, CONNECT + subscribe(b"flood.>")) for _ in range(10)
        ]
        for reader in readers:
            reader.hear_until_pong()
        before = [rss_bytes(pid) for pid in processes]
        with siege.bystander.talking():
            publisher.send(numbered(range(2000)))
            publisher.hear_until_pong()
            eventually(lambda: siege.counted()["ended SlowReader"] == 10, siege.counted)
        grown = [rss_bytes(pid) - then for pid, then in zip(processes, before, strict=True)]
        assert max(grown) < 10 * BOUND + 24 * MIB, [each / MIB for each in grown]
        for reader in readers:
            with reader:
                reader.hear_bytes()
        publisher.send(message(b"still.there"))
        assert publisher.hear_errors() == []
    siege.await_counts(ended_SlowReader=10)


def test_a_welcome_comes_however_the_records_are_cut(siege: Siege) -> None:
    with EncryptedStranger(siege.gateway, b"") as stranger:
        for at in range(len(CONNECT)):
            stranger.send(CONNECT[at : at + 1])
        assert stranger.hear(Kind.WELCOME)
