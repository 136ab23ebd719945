"""WebSockets that speak datagrams: one message to a thousand, and one to one; what each costs."""

import json
import os
import select
import socket
import statistics
import time

from benchmarks.running import Figures, Gateway, cpu_s

RECEIVERS = 1000
MESSAGES = 300
ONE_TO_ONE = 20_000
# So many of a fan-out are on their way at once: what is merged would flatter it.
WINDOW = 1
ROUNDS = 5
WAIT_S = 60
_KEY = "dGhlIHNhbXBsZSBub25jZQ=="
_DATA = {"symbol": "VOD", "price": 101.25, "text": "x" * 64}
# What every message has once.
_MARK = b'"id"'
_MASK = bytes(4)


def run() -> Figures:
    """Measure the fan-out and the way from one to one, in turns."""
    with Gateway() as gateway:
        worker = gateway.worker()
        rounds = [
            (_round(gateway.port, worker, RECEIVERS, MESSAGES, WINDOW)) for _ in range(ROUNDS)
        ]
        pairs = [(_round(gateway.port, worker, 1, ONE_TO_ONE, 100)) for _ in range(ROUNDS)]
    return {"fan_out": _middle(rounds), "one_to_one": _middle(pairs)}


def lines(figures: Figures) -> list[str]:
    """The figures for people."""
    shown = [f"WebSockets, datagrams with {len(json.dumps(_DATA))} bytes of data"]
    for name, to in (("fan_out", f"{RECEIVERS:,}"), ("one_to_one", "1")):
        per_s, cpu_us = figures[name]["per_s"], figures[name]["cpu_us"]
        shown.append(f"  1 → {to:<6} {per_s:,.0f} deliveries/s, {cpu_us:.1f} µs of the worker each")
    return shown


def _middle(rounds: list[Figures]) -> Figures:
    return {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}


def _round(port: int, worker: int, receivers: int, messages: int, window: int) -> Figures:
    """Publish so many messages to so many receivers, a window of them at once."""
    crowd = _Crowd(port, receivers)
    speaker = _opened(port)
    said = _framed({"path": "/bench/prices", "data": _DATA})
    cpu, began = cpu_s(worker), time.monotonic()
    for sent in range(0, messages, window):
        speaker.sendall(said * window)
        crowd.await_heard((sent + window) * receivers)
    took = time.monotonic() - began
    spent = cpu_s(worker) - cpu
    speaker.close()
    crowd.close()
    deliveries = messages * receivers
    return {"per_s": deliveries / took, "cpu_us": spent / deliveries * 1e6}


class _Crowd:
    """Receivers that only count, so that they cost little beside what is measured."""

    def __init__(self, port: int, count: int) -> None:
        self._sockets = {sock.fileno(): sock for sock in (_opened(port) for _ in range(count))}
        self._tails = dict.fromkeys(self._sockets, b"")
        self._poll = select.epoll()
        for fd, sock in self._sockets.items():
            sock.sendall(_framed({"interest": "/bench/prices", "ack": 1}))
            _read_until(sock, b'{"ok":1}')
            sock.setblocking(False)
            self._poll.register(fd, select.EPOLLIN)
        self._heard = 0

    def await_heard(self, count: int) -> None:
        """Wait until so many messages were heard in all."""
        ends = time.monotonic() + WAIT_S
        while self._heard < count:
            if time.monotonic() > ends:
                raise TimeoutError(f"{self._heard} of {count} messages came")
            for fd, _ in self._poll.poll(1):
                data = self._tails[fd] + os.read(fd, 1 << 16)
                self._heard += data.count(_MARK)
                # Too short for a mark, and long enough for the beginning of one.
                self._tails[fd] = data[1 - len(_MARK) :]

    def close(self) -> None:
        self._poll.close()
        for sock in self._sockets.values():
            sock.close()


def _opened(port: int) -> socket.socket:
    """A WebSocket that is welcome."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
    sock.sendall(
        b"GET /default/ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
        b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        + f"Sec-WebSocket-Key: {_KEY}\r\n\r\n".encode()
    )
    _read_until(sock, b"}}")
    return sock


def _read_until(sock: socket.socket, end: bytes) -> None:
    heard = b""
    while not heard.endswith(end):
        data = sock.recv(4096)
        if not data:
            raise ConnectionError(f"the gateway hung up after {heard[-100:]!r}")
        heard += data


def _framed(datagram: object) -> bytes:
    """A datagram as a client sends it; a mask of zeros changes nothing."""
    text = json.dumps(datagram, separators=(",", ":")).encode()
    size = bytes((0x80 | len(text),)) if len(text) < 126 else b"\xfe" + len(text).to_bytes(2, "big")
    return b"\x81" + size + _MASK + text
