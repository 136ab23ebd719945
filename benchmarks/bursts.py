"""Bursts at full speed to Python subscribers: is anything lost, and how long does it take?

One publisher writes prepared frames to its socket as fast as that takes them. The subscribers are
ordinary Python clients, each a process of its own. nats-server and Redis are measured beside Weft
if they are installed (`make bench-peers` does that), each with the settings it comes with.
"""

import asyncio
import contextlib
import importlib.util
import multiprocessing
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from ctypes import c_longlong
from typing import Any, NamedTuple

from benchmarks.peers.brokers import PEERS
from benchmarks.running import Failed, Figures, Gateway
from weft.wire.frames import Kind, encode
from weft.wire.message.message import Message

SUBJECT = "burst"
GROUP = "workers"
READY_S = 30
# A subscriber that counted nothing for so long gets nothing more.
QUIET_S = 5.0
LIMIT_S = 120.0

_CONTEXT = multiprocessing.get_context("spawn")


class Case(NamedTuple):
    """One burst: what is sent, to how many, and for how long each handles a message, in s."""

    title: str
    messages: int
    size: int
    handling_s: tuple[float, ...]
    is_group: bool = False


CASES = (
    Case("200,000 × 128 B to one subscriber", 200_000, 128, (0.0,)),
    Case("3,000 × 100 kB to one subscriber", 3_000, 100_000, (0.0,)),
    Case("10,000 × 10 kB to a group of 4", 10_000, 10_000, (0.0,) * 4, is_group=True),
    Case(
        "the same, one takes 2 ms each, three 0.2", 10_000, 10_000, (0.002, 2e-4, 2e-4, 2e-4), True
    ),
)
BROKERS = ("weft", "nats29", "redis")


def run() -> Figures:
    """Measure every case at every broker that is installed."""
    figures: Figures = {}
    for name in BROKERS:
        if not _is_there(name):
            continue
        for case in CASES:
            if not (case.is_group and name == "redis"):
                figures[f"{case.title}, {name}"] = _measured(name, case)
    return figures


def lines(figures: Figures) -> list[str]:
    """The figures for people."""
    title = f"{'burst':60} {'lost':>8} {'sent in':>8} {'heard in':>9}  by each"
    return [title] + [
        f"{name:60} {each['lost']:>8,} {each['sent_s']:>7.2f}s {each['heard_s']:>8.2f}s"
        f"  {' '.join(f'{count:,}' for count in each['heard'])}"
        for name, each in figures.items()
    ]


def _is_there(name: str) -> bool:
    library = {"weft": "weft", "nats29": "nats", "redis": "redis"}[name]
    return PEERS[name].is_installed and importlib.util.find_spec(library) is not None


def _measured(name: str, case: Case) -> Figures:
    with contextlib.ExitStack() as stack:
        port = _started(name, stack)
        counts = [_CONTEXT.Value(c_longlong, -1) for _ in case.handling_s]
        for count, handling_s in zip(counts, case.handling_s, strict=True):
            process = _CONTEXT.Process(
                target=_subscribe, args=(name, port, count, handling_s, case.is_group), daemon=True
            )
            process.start()
            stack.callback(process.join)
            stack.callback(process.terminate)
        _await_ready(counts)
        began = time.monotonic()
        sent_s = _send(name, port, case)
        ended = _await_quiet(counts, case.messages)
        heard = [max(int(count.value), 0) for count in counts]
    return {
        "lost": case.messages - sum(heard),
        "sent_s": sent_s,
        "heard_s": ended - began,
        "heard": heard,
    }


def _started(name: str, stack: contextlib.ExitStack) -> int:
    if name == "weft":
        return stack.enter_context(Gateway()).port
    peer = PEERS[name]
    if name == "redis":
        # As it comes: with its limit on what a subscriber is owed.
        speed = peer.arguments.index("--client-output-buffer-limit")
        peer = type(peer)(
            peer.name, peer.title, peer.protocol, peer.program, "", peer.arguments[:speed]
        )
    return stack.enter_context(peer.running()).port


def _await_ready(counts: list[Any]) -> None:
    ends = time.monotonic() + READY_S
    while any(count.value < 0 for count in counts):
        if time.monotonic() > ends:
            raise Failed(f"the subscribers were not ready within {READY_S} s")
        time.sleep(0.01)


def _await_quiet(counts: list[Any], expected: int) -> float:
    """Wait until everything was counted, or nothing more is; return when the last was."""
    total, changed = -1, time.monotonic()
    ends = changed + LIMIT_S
    while total < expected and time.monotonic() < min(changed + QUIET_S, ends):
        heard = sum(count.value for count in counts)
        if heard != total:
            total, changed = heard, time.monotonic()
        time.sleep(0.005)
    return changed


# The publisher.


def _send(name: str, port: int, case: Case) -> float:
    """Send a burst as fast as the broker reads it; how long that took."""
    with socket.create_connection(("127.0.0.1", port)) as sock:
        body = b"x" * case.size
        if name == "weft":
            sock.sendall(
                encode(Kind.CONNECT, b"default", Message(version=1, client="burst").encode())
            )
            one = encode(Kind.MESSAGE, SUBJECT.encode(), body)
        elif name == "redis":
            one = b"*3\r\n$7\r\nPUBLISH\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (
                len(SUBJECT),
                SUBJECT.encode(),
                len(body),
                body,
            )
        else:
            sock.sendall(b'CONNECT {"verbose":false}\r\n')
            one = b"PUB %s %d\r\n%s\r\n" % (SUBJECT.encode(), len(body), body)
        threading.Thread(target=_ignore, args=(sock,), daemon=True).start()
        at_once = max(1, 65_536 // len(one))
        began = time.monotonic()
        for start in range(0, case.messages, at_once):
            sock.sendall(one * min(at_once, case.messages - start))
        sent_s = time.monotonic() - began
        sock.shutdown(socket.SHUT_WR)
    return sent_s


def _ignore(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while sock.recv(65_536):
            pass


# The subscribers.


def _subscribe(name: str, port: int, count: Any, handling_s: float, is_group: bool) -> None:
    heard = {"weft": _weft, "nats29": _nats, "redis": _redis}[name]

    def handle(_: object) -> None:
        count.value += 1
        if handling_s:
            time.sleep(handling_s)

    def ready() -> None:
        count.value = 0

    asyncio.run(heard(port, handle, ready, GROUP if is_group else ""))


Handle = Callable[[object], None]
Ready = Callable[[], None]
Subscriber = Callable[[int, Handle, Ready, str], Awaitable[None]]


async def _weft(port: int, handle: Handle, ready: Ready, group: str) -> None:
    import weft  # noqa: PLC0415  # each process needs but one of them

    async with weft.connect(f"127.0.0.1:{port}") as connection:
        await connection.subscribe(SUBJECT, handle, group=group).ready()
        ready()
        await asyncio.Event().wait()


async def _nats(port: int, handle: Handle, ready: Ready, group: str) -> None:
    import nats  # noqa: PLC0415

    async def hear(message: object) -> None:
        handle(message)

    connection = await nats.connect(f"nats://127.0.0.1:{port}")
    await connection.subscribe(SUBJECT, queue=group, cb=hear)
    await connection.flush()
    ready()
    await asyncio.Event().wait()


async def _redis(port: int, handle: Handle, ready: Ready, group: str) -> None:  # noqa: ARG001
    import redis.asyncio as redis  # noqa: PLC0415

    async with redis.Redis(port=port) as connection:
        subscriber = connection.pubsub(ignore_subscribe_messages=True)
        await subscriber.subscribe(**{SUBJECT: handle})
        await subscriber.get_message(timeout=1)
        ready()
        await subscriber.run()
