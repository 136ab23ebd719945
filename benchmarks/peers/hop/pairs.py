"""The pairs of brokers that are compared: two of a kind that are linked."""

import contextlib
import json
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers.brokers import PEERS, START_S, Peer, free_port
from benchmarks.peers.report import PeerFacts
from benchmarks.running import Failed, Gateway

_NATS = """\
host: "127.0.0.1"
port: {port}
http: "127.0.0.1:{monitor}"
server_name: "{name}"
cluster {{
    name: "hop"
    host: "127.0.0.1"
    port: {route}
    routes: [{others}]
}}
"""


class Linked(NamedTuple):
    """Two brokers that are linked: their ports, and every process they consist of."""

    ports: tuple[int, int]
    pids: tuple[int, ...]


class Pair(NamedTuple):
    """Two brokers of a kind."""

    peer: Peer

    @property
    def name(self) -> str:
        """How it is chosen on the command line."""
        return self.peer.name

    @property
    def protocol(self) -> str:
        """What its clients speak."""
        return self.peer.protocol

    @property
    def is_installed(self) -> bool:
        """Whether it can be started here."""
        return self.peer.is_installed

    def facts(self) -> PeerFacts:
        """What a reader of the report is told about it."""
        return self.peer.facts()

    @contextlib.contextmanager
    def running(self) -> Iterator[Linked]:
        """Start both, wait until they are linked, and end them."""
        with contextlib.ExitStack() as stack:
            if self.peer.program is None:
                yield _weft(stack)
            else:
                yield _nats(stack, self.peer.program)


def _weft(stack: contextlib.ExitStack) -> Linked:
    near = stack.enter_context(Gateway(name="near"))
    join = {"join": [f"127.0.0.1:{near.port}"]}
    far = stack.enter_context(Gateway(name="far", mesh=join))
    _wait_until(lambda: _links_of(near) == 1 == _links_of(far))
    pids = (near.front, near.worker(), far.front, far.worker())
    return Linked((near.port, far.port), pids)


def _links_of(gateway: Gateway) -> int:
    mesh = gateway.status()["services"]["default"]["status"]["mesh"]
    return int(mesh["links"])


def _nats(stack: contextlib.ExitStack, program: str) -> Linked:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weft-peer-")))
    routes = (free_port(), free_port())
    ports = (free_port(), free_port())
    monitors = (free_port(), free_port())
    pids = []
    for at, name in enumerate(("near", "far")):
        other = f'"nats://127.0.0.1:{routes[1 - at]}"'
        config = folder / name
        config.write_text(
            _NATS.format(
                port=ports[at], monitor=monitors[at], name=name, route=routes[at], others=other
            )
        )
        process = subprocess.Popen(
            [program, "--config", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        stack.callback(_end, process)
        pids.append(process.pid)
    _wait_until(lambda: all(_routes_of(port) > 0 for port in monitors))
    return Linked(ports, tuple(pids))


def _routes_of(monitor: int) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{monitor}/routez", timeout=1) as answer:
            return int(json.load(answer)["num_routes"])
    except OSError:
        return 0


def _wait_until(is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + START_S
    while time.monotonic() < ends:
        if is_so():
            return
        time.sleep(0.02)
    raise Failed(f"the two were not linked within {START_S} s")


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    process.wait(START_S)


PAIRS = {name: Pair(PEERS[name]) for name in ("weft", "nats29", "nats215")}
