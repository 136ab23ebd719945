"""How long it takes to come back after a worker is killed, and to cut a reader that was stopped."""

import os
import signal
import socket
import statistics
import time

from benchmarks.running import Figures, Gateway, Load, load
from weft.wire.frames import Kind, encode

KILLS = 10
READERS = 20
SUBJECT = "load.0"
WAIT_S = 60
# What a stopped reader is sent, 5 MB: more than the kernel holds, less than its bound, so that
# only its age can cut it.
FLOW = {"size": 128, "count": 30_000, "window": 500}
_CONNECT = encode(Kind.CONNECT, b"default")


def run() -> Figures:
    """Kill the worker of one gateway after another, then stop the readers of another."""
    restarts: list[float] = []
    # A gateway of its own each time: one whose worker keeps dying waits longer and longer.
    for _ in range(KILLS):
        with Gateway() as gateway:
            restarts.append(_restart_s(gateway))
    with Gateway() as gateway:
        cut_s = _cut_s(gateway)
    return {"restarts_s": restarts, "readers": READERS, "cut_s": cut_s}


def lines(figures: Figures) -> list[str]:
    """The figures for people."""
    restarts = figures["restarts_s"]
    middle, worst = statistics.median(restarts), max(restarts)
    return [
        "what is killed or stopped",
        f"  worker killed    welcomed again after {middle:.2f} s, at most {worst:.2f}",
        f"  reader stopped   all {figures['readers']} cut after {figures['cut_s']:.1f} s",
    ]


def _restart_s(gateway: Gateway) -> float:
    """From the kill until a newcomer is welcomed by the next worker."""
    killed = gateway.worker()
    began = time.monotonic()
    os.kill(killed, signal.SIGKILL)
    # Whoever comes before the front knows waits for the next worker.
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=WAIT_S) as newcomer:
        newcomer.sendall(_CONNECT)
        if not newcomer.recv(1 << 16):
            raise RuntimeError("a newcomer was turned away")
    took_s = time.monotonic() - began
    if gateway.worker() == killed:
        raise RuntimeError("the worker was not killed")
    return took_s


def _cut_s(gateway: Gateway) -> float:
    """From the stop until every stopped reader is cut."""
    readers = Load("sit", port=gateway.port, subject=SUBJECT, count=READERS)
    readers.figures()
    began = time.monotonic()
    readers.process.send_signal(signal.SIGSTOP)
    try:
        load("flow", port=gateway.port, **FLOW)
        while gateway.cut() < READERS:
            if time.monotonic() > began + WAIT_S:
                raise RuntimeError(f"{gateway.cut()} of {READERS} readers cut after {WAIT_S} s")
            time.sleep(0.1)
        return time.monotonic() - began
    finally:
        readers.process.send_signal(signal.SIGCONT)
        readers.end()
