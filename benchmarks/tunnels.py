"""Five thousand idle tunnels: what each costs, and how fast one message reaches all of them."""

import json
import select
import socket
import statistics
import time
import urllib.request
from contextlib import ExitStack

from benchmarks.running import WAIT_S, Figures, Gateway, cpu_s, steady_rss_bytes

TUNNELS = 5000
FORMATS = ("ndjson", "sse", "script", "multipart", "poll")
IDLE_S = 10
ROUNDS = 9
MESSAGES = 10
_AT_ONCE = 500
_END = b"!end!"


def run() -> Figures:
    """Measure one gateway."""
    with Gateway() as gateway, ExitStack() as held:
        worker = gateway.worker()
        _opened(gateway.port, len(FORMATS), held)
        before = steady_rss_bytes(worker)
        tunnels = _opened(gateway.port, TUNNELS, held)
        idle = steady_rss_bytes(worker)
        spent = cpu_s(worker)
        time.sleep(IDLE_S)
        spent = cpu_s(worker) - spent
        streams = {known_by: sock for known_by, (form, sock) in tunnels.items() if form != "poll"}
        asked = [{"interest": "/all", "tunnel": known_by} for known_by in streams]
        for at in range(0, len(asked), _AT_ONCE):
            _say(gateway.port, asked[at : at + _AT_ONCE])
        rates = [_deliver(gateway.port, list(streams.values()), worker) for _ in range(ROUNDS)]
        heard = steady_rss_bytes(worker)
    return {
        "bytes_each": (idle - before) / TUNNELS,
        "bytes_each_after": (heard - before) / TUNNELS,
        "idle_cpu": spent / IDLE_S,
        "receivers": len(streams),
        "per_s": statistics.median(rate for rate, _ in rates),
        "per_cpu_s": statistics.median(rate for _, rate in rates),
    }


def lines(figures: Figures) -> list[str]:
    """The figures for people."""
    memory = (
        f"{figures['bytes_each'] / 1024:.2f} KiB each in the worker,"
        f" {figures['bytes_each_after'] / 1024:.2f} KiB after {ROUNDS * MESSAGES} messages to all"
    )
    to_all = (
        f"{figures['per_s']:,.0f} deliveries/s to {figures['receivers']:,} streams;"
        f" {figures['per_cpu_s']:,.0f} for each second of the worker's core"
    )
    return [
        f"{TUNNELS:,} idle tunnels: {', '.join(FORMATS)}",
        f"  memory   {memory}",
        f"  idle     {figures['idle_cpu']:.1%} of a core",
        f"  to all   {to_all}",
    ]


def _opened(port: int, count: int, held: ExitStack) -> dict[str, tuple[str, socket.socket]]:
    """Tunnels of all formats by their ids, those that are polled with a poll that is held."""
    found: dict[str, tuple[str, socket.socket]] = {}
    forms = [FORMATS[number % len(FORMATS)] for number in range(count)]
    for at in range(0, count, _AT_ONCE):
        batch = forms[at : at + _AT_ONCE]
        socks = [held.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in batch]
        for form, sock in zip(batch, socks, strict=True):
            _ask(sock, f"tunnel?new=1&format={form}")
        for form, sock in zip(batch, socks, strict=True):
            known_by = _until(sock, b'"ping_s"').partition(b'"tunnel":"')[2].partition(b'"')[0]
            found[known_by.decode()] = (form, sock)
            if form == "poll":
                _ask(sock, f"tunnel?tunnel={known_by.decode()}&format=poll")
    return found


def _deliver(port: int, socks: list[socket.socket], worker: int) -> tuple[float, float]:
    """Publish some messages to all: deliveries in a second, and in one of the worker's time."""
    poll = select.epoll()
    for sock in socks:
        sock.setblocking(False)
        poll.register(sock, select.EPOLLIN)
    by_fd = {sock.fileno(): sock for sock in socks}
    line = socket.create_connection(("127.0.0.1", port))
    _ask(line, "tunnel?new=1&format=ndjson")
    known_by = _until(line, b'"ping_s"').partition(b'"tunnel":"')[2].partition(b'"')[0].decode()
    spent, began = cpu_s(worker), time.perf_counter()
    for number in range(MESSAGES):
        data = _END.decode() if number == MESSAGES - 1 else "x" * 64
        _say(port, [{"path": "/all", "data": data, "tunnel": known_by}])
    waiting = set(by_fd)
    while waiting:
        ready = poll.poll(WAIT_S)
        if not ready:
            raise TimeoutError(f"{len(waiting)} heard nothing for {WAIT_S} s")
        for fd, _ in ready:
            if _END in by_fd[fd].recv(1 << 16):
                waiting.discard(fd)
    took, spent = time.perf_counter() - began, cpu_s(worker) - spent
    poll.close()
    line.close()
    deliveries = MESSAGES * len(socks)
    return deliveries / took, deliveries / max(spent, 0.01)


def _ask(sock: socket.socket, target: str) -> None:
    sock.sendall(f"GET /default/{target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())


def _until(sock: socket.socket, end: bytes) -> bytes:
    sock.settimeout(WAIT_S)
    data = b""
    while end not in data:
        more = sock.recv(1 << 16)
        if not more:
            raise ConnectionError(f"{data!r} and no more")
        data += more
    return data


def _say(port: int, datagrams: list[dict[str, str]]) -> None:
    url = f"http://127.0.0.1:{port}/default/events"
    body = json.dumps(datagrams).encode()
    with urllib.request.urlopen(url, body, timeout=WAIT_S) as answer:
        if json.load(answer) != {"ok": len(datagrams)}:
            raise RuntimeError("not everything was taken")
