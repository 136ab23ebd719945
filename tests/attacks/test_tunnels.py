"""Tunnels under attack: everyone who only opens, never reads, comes back too often, or lies."""

import json
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from tests.attacks.gateway_process import GatewayProcess, eventually, rss_bytes
from tests.attacks.siege import Siege

SETTINGS = {
    "web.tunnels": 3000,
    "web.cull_s": 1.0,
    "web.ring_bytes": 32_768,
    "limits.outbox_bytes": 262_144,
    "limits.outbox_age_s": 3.0,
}
WAIT_S = 25
HEAD = "HTTP/1.1\r\nHost: localhost\r\n\r\n"
TUNNEL_ID = re.compile(rb'"tunnel":"([^"]+)"')


@contextmanager
def connection(gateway: GatewayProcess) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", gateway.port), WAIT_S) as sock:
        yield sock


def ask(sock: socket.socket, target: str, until: bytes) -> bytes:
    """Ask, and read until something came."""
    sock.sendall(f"GET /default/{target} {HEAD}".encode())
    return read(sock, until)


def read(sock: socket.socket, until: bytes) -> bytes:
    data = b""
    while until not in data:
        more = sock.recv(1 << 16)
        if not more:
            break
        data += more
    return data


def opened(sock: socket.socket, form: str = "ndjson") -> str:
    found = TUNNEL_ID.search(ask(sock, f"tunnel?new=1&format={form}", b'"ping_s"'))
    assert found
    return found[1].decode()


def say(gateway: GatewayProcess, known_by: str, datagrams: list[dict[str, object]]) -> bytes:
    body = json.dumps(datagrams).encode()
    head = f"POST /default/events?tunnel={known_by} HTTP/1.1\r\nHost: localhost\r\n"
    with connection(gateway) as sock:
        sock.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return read(sock, b"}\n")


def expect(siege: Siege, *counts: str) -> None:
    """Wait until this was counted, and nothing else but those who just left."""

    def counted() -> set[str]:
        return set(siege.counted()) - {"ended left"}

    eventually(lambda: counted() == set(counts), lambda: f"{counted()}, not {counts}")


@pytest.mark.req("TUN-1")
def test_thousands_of_idle_tunnels_and_no_more_than_there_may_be(
    gateway: GatewayProcess, siege: Siege
) -> None:
    worker = gateway.worker()
    before = rss_bytes(worker)
    with ExitStack() as held:
        for number in range(3000):
            sock = held.enter_context(connection(gateway))
            form = ("ndjson", "sse", "script", "multipart")[number % 4]
            sock.sendall(f"GET /default/tunnel?new=1&format={form} {HEAD}".encode())
            if number % 100 == 99:
                # The last of a hundred is here: so are those before it.
                assert b"200 OK" in read(sock, b'"ping_s"')
        with connection(gateway) as sock:
            assert b"429" in ask(sock, "tunnel?new=1&format=ndjson", b"\r\n\r\n")
        assert rss_bytes(worker) - before < 3000 * 24 * 1024
    assert gateway.worker() == worker
    expect(siege, "refused TooMany", "ended Silent")


def test_whoever_never_reads_is_cut_and_takes_little(gateway: GatewayProcess, siege: Siege) -> None:
    worker = gateway.worker()
    with connection(gateway) as talker, ExitStack() as held:
        known_by = opened(talker)
        for _ in range(10):
            sock = held.enter_context(socket.socket())
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.settimeout(WAIT_S)
            sock.connect(("127.0.0.1", gateway.port))
            reader = opened(sock, "sse")
            assert b'"ok":1' in say(gateway, reader, [{"interest": "/flood"}])
        before = rss_bytes(worker)
        large: dict[str, object] = {"path": "/flood", "data": "\x01" * 10_000}

        def is_cut() -> bool:
            say(gateway, known_by, [large] * 10)
            return gateway.counts()["ended SlowReader"] >= 10

        eventually(is_cut, lambda: str(gateway.counts()))
        # For each what waits to be sent, as frames and as text six times as long, and its ring.
        assert rss_bytes(worker) - before < 10 * (262_144 + 6 * 262_144) + (16 << 20)
    expect(siege, "ended SlowReader", "ended Silent")


def test_a_storm_of_those_who_come_back(gateway: GatewayProcess, siege: Siege) -> None:
    worker = gateway.worker()
    with connection(gateway) as first:
        known_by = opened(first)
        for _ in range(20):
            assert b'"ok":100' in say(gateway, known_by, [{"ping": "x"}] * 100)
        before = rss_bytes(worker)
        for number in range(500):
            with connection(gateway) as sock:
                target = f"tunnel?tunnel={known_by}&format=ndjson&last={number}.{number}"
                sock.sendall(f"GET /default/{target} {HEAD}".encode())
                if number % 10 == 0:
                    assert b'"tunnel"' in read(sock, b'"ping_s"')
        assert rss_bytes(worker) - before < 16 << 20
        with connection(gateway) as last:
            said = ask(last, f"tunnel?tunnel={known_by}&format=ndjson", b'"ping_s"')
            assert known_by.encode() in said
    expect(siege, "refused UnknownLast", "ended Silent")


def test_nobody_finds_a_tunnel_by_trying_or_chooses_its_id(
    gateway: GatewayProcess, siege: Siege
) -> None:
    with connection(gateway) as sock:
        known_by = opened(sock)
        for guess in ("a", "0", known_by[:-1], known_by.lower(), "%00", known_by + "%20", "*", ">"):
            assert b"403" in say(gateway, guess, [{"ping": ""}])
            with connection(gateway) as other:
                said = ask(other, f"tunnel?tunnel={guess}&format=ndjson", b'"ping_s"')
                found = TUNNEL_ID.search(said)
                assert found
                assert found[1].decode() not in {guess, known_by}
                assert b'"renewed":true' in said
    expect(siege, "refused NotYours", "ended Silent")


def test_nothing_of_a_request_comes_into_a_head(gateway: GatewayProcess, siege: Siege) -> None:
    for target in (
        "tunnel?new=1&format=sse%0d%0aX-Evil:%201",
        "tunnel?new=1&format=jsonp&callback=f%0d%0aX-Evil:%201",
        "tunnel?tunnel=x%0d%0aX-Evil:%201&format=none",
        "tunnel?new=1&format=ndjson&name=a%0d%0aX-Evil:%201",
        "events?tunnel=x%0d%0aX-Evil:%201&datagram=%7B%7D",
    ):
        with connection(gateway) as sock:
            head, _, body = ask(sock, target, b"}\n").partition(b"\r\n\r\n")
            assert b"X-Evil" not in head
            assert body.startswith(b'{"error"')
    expect(
        siege, "refused BadOption", "refused BadGreeting", "refused NotYours", "ended BadGreeting"
    )


def test_half_a_request_for_a_tunnel_comes_to_an_end(gateway: GatewayProcess, siege: Siege) -> None:
    with ExitStack() as held:
        socks = [held.enter_context(connection(gateway)) for _ in range(50)]
        for sock in socks:
            sock.sendall(b"GET /default/tunnel?new=1&format=ndjson HTTP/1.1\r\n")
        assert all(b"408" in read(sock, b"\r\n\r\n") for sock in socks)
    expect(siege, "refused TooSlow")
