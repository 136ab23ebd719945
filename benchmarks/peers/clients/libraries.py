"""The client libraries that are compared, and the broker that each talks to."""

import contextlib
import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.peers.brokers import PEERS, free_port
from benchmarks.peers.measuring import BROKER_CORE, LOAD_CORE, pinned
from benchmarks.peers.report import PeerFacts
from benchmarks.peers.rows import Row
from benchmarks.running import WAIT_S, Failed, line_of
from weft import distribution

PACKAGE = "benchmarks.peers.clients"
ROUTER = "router"


@dataclass(frozen=True, slots=True)
class Library:
    """A client: `program` is its module here and what to call there, `broker` what it talks to."""

    name: str
    title: str
    distribution: str
    program: str
    broker: str
    settings: str

    @property
    def is_installed(self) -> bool:
        """Whether it can be used here."""
        try:
            importlib.metadata.version(self.distribution)
        except importlib.metadata.PackageNotFoundError:
            return False
        return self.broker not in PEERS or PEERS[self.broker].is_installed

    def facts(self) -> PeerFacts:
        """What a reader of the report is told about it."""
        version = importlib.metadata.version(self.distribution)
        return PeerFacts(
            name=self.name,
            title=f"{self.title} {version}",
            version=version,
            settings=self.settings,
            command=[self.program],
            config="",
        )

    @contextlib.contextmanager
    def broker_running(self) -> Iterator[int]:
        """Start what it talks to; the port to talk to it at."""
        if self.broker in PEERS:
            with PEERS[self.broker].running() as broker:
                yield broker.port
        elif self.broker == ROUTER:
            with _router() as port:
                yield port
        else:
            yield free_port()


def measure(row: Row, library: Library) -> dict[str, float]:
    """The figures of one load on one library.

    Raises:
        Failed: it ended otherwise than it should.
    """
    with contextlib.ExitStack() as stack:
        with pinned(BROKER_CORE):
            port = stack.enter_context(library.broker_running())
        with pinned(LOAD_CORE):
            arguments = [library.program, row.command, str(port), str(row.options["seconds"])]
            done = subprocess.run(
                [sys.executable, "-m", f"{PACKAGE}.alone", *arguments],
                capture_output=True,
                text=True,
                timeout=WAIT_S,
                check=False,
            )
    if done.returncode != 0:
        raise Failed(done.stderr.strip().rpartition("\n")[2] or f"status {done.returncode}")
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


@contextlib.contextmanager
def _router() -> Iterator[int]:
    port = free_port()
    with subprocess.Popen(
        [sys.executable, "-m", f"{PACKAGE}.zenoh_router", str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as router:
        line_of(router)
        yield port
        router.communicate(timeout=WAIT_S)


LIBRARIES = {
    library.name: library
    for library in (
        Library("weft", "weft, asyncio", distribution.NAME, "weft_async:run", "weft", "uvloop"),
        Library(
            "weft-blocking",
            "weft, blocking",
            distribution.NAME,
            "weft_blocking:run",
            "weft",
            "callback thread",
        ),
        Library("nats-py", "nats-py", "nats-py", "nats_py:run", "nats29", "asyncio on uvloop"),
        Library(
            "zenoh",
            "zenoh, router",
            "eclipse-zenoh",
            "zenoh_python:run",
            ROUTER,
            "blocks when congested; through a router in another process",
        ),
        Library(
            "zenoh-peers",
            "zenoh, peers",
            "eclipse-zenoh",
            "zenoh_python:run_peers",
            "",
            "the same without a broker: two sessions of one process",
        ),
        Library(
            "pyzmq",
            "pyzmq",
            "pyzmq",
            "pyzmq:run",
            "",
            "no broker: PUB to SUB on one thread, REQ to REP on two; no limit on what is queued",
        ),
        Library(
            "pyzmq-asyncio",
            "pyzmq, asyncio",
            "pyzmq",
            "pyzmq_asyncio:run",
            "",
            "on uvloop; no broker, no limit on what is queued",
        ),
        Library(
            "redis-py",
            "redis-py",
            "redis",
            "redis_py:run",
            "redis",
            "blocking, pipelines of 200, a thread that listens",
        ),
        Library(
            "redis-asyncio",
            "redis-py, asyncio",
            "redis",
            "redis_asyncio:run",
            "redis",
            "on uvloop, pipelines of 200",
        ),
        Library("paho", "paho-mqtt", "paho-mqtt", "paho_mqtt:run", "mosquitto", "blocking, QoS 0"),
        Library(
            "aiomqtt", "aiomqtt", "aiomqtt", "aio_mqtt:run", "mosquitto", "asyncio on uvloop, QoS 0"
        ),
    )
}
