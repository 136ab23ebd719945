"""The ways from client to client that are compared."""

import contextlib
import importlib.metadata
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.brokers import Running, free_port
from benchmarks.peers.report import PeerFacts
from benchmarks.running import Gateway
from weft import distribution

RELAYED = "relayed"


@dataclass(frozen=True, slots=True)
class Way:
    """One way: `module` has the programs at both ends, which are told `way`.

    `{port}` and `{folder}` in `at` stand for values of one measurement.
    """

    name: str
    title: str
    distribution: str
    module: str
    way: str
    settings: str
    at: str = ""
    # Weft's own: what its gateway is set to.
    gateway: str = ""

    @property
    def is_lane(self) -> bool:
        """Whether everything must go by lanes."""
        return bool(self.gateway) and self.way != RELAYED

    @property
    def is_installed(self) -> bool:
        """Whether it can be used here."""
        try:
            importlib.metadata.version(self.distribution)
        except importlib.metadata.PackageNotFoundError:
            return False
        return True

    def facts(self) -> PeerFacts:
        """What a reader of the report is told about it."""
        version = importlib.metadata.version(self.distribution)
        return PeerFacts(
            name=self.name,
            title=f"{self.title} {version}",
            version=version,
            settings=self.settings,
            command=[self.module, self.way],
            config=self.gateway,
        )

    @contextlib.contextmanager
    def meeting(self, folder: Path) -> Iterator[tuple[str, list[int]]]:
        """Where both ends meet, and the processes of a gateway that is started for it."""
        if not self.gateway:
            port = str(free_port()) if "{port}" in self.at else ""
            yield self.at.replace("{port}", port).replace("{folder}", str(folder)), []
            return
        with Gateway(**json.loads(self.gateway)) as gateway:
            running = Running(gateway.port, (gateway.front, gateway.worker()))
            yield f"127.0.0.1:{running.port}", list(running.pids)


_SEALED = '{"lanes": {"encrypt": "always"}}'

WAYS = {
    way.name: way
    for way in (
        Way(
            "weft-relayed",
            "weft, relayed",
            distribution.NAME,
            "weft_client",
            RELAYED,
            'asyncio on uvloop, direct="never"',
            gateway="{}",
        ),
        # What others are held against: what two clients on one machine get.
        Way(
            "weft",
            "weft, lane, Unix",
            distribution.NAME,
            "weft_client",
            "unix",
            "asyncio on uvloop; asked for with direct()",
            gateway="{}",
        ),
        Way(
            "weft-tcp",
            "weft, lane, TCP",
            distribution.NAME,
            "weft_client",
            "tcp",
            "the same, over loopback: the receiver keeps its Unix name for itself",
            gateway="{}",
        ),
        Way(
            "weft-sealed",
            "weft, lane, TCP encrypted",
            distribution.NAME,
            "weft_client",
            "tcp",
            'the same, with lanes.encrypt = "always"',
            gateway=_SEALED,
        ),
        Way(
            "zenoh",
            "zenoh, peers",
            "eclipse-zenoh",
            "zenoh_peer",
            "tcp",
            "blocks when congested, no router, TCP over loopback",
            "tcp/127.0.0.1:{port}",
        ),
        Way(
            "zenoh-unix",
            "zenoh, peers, Unix",
            "eclipse-zenoh",
            "zenoh_peer",
            "unix",
            "the same, over a Unix socket",
            "unixsock-stream/{folder}/zenoh",
        ),
        Way(
            "pyzmq",
            "pyzmq, TCP",
            "pyzmq",
            "pyzmq_peer",
            "tcp",
            "PUB to SUB, REQ to REP, blocking; no limit on what is queued; over loopback",
            "tcp://127.0.0.1:{port}",
        ),
        Way(
            "pyzmq-ipc",
            "pyzmq, ipc",
            "pyzmq",
            "pyzmq_peer",
            "ipc",
            "the same, over a Unix socket",
            "ipc://{folder}/pyzmq",
        ),
    )
}
