"""The brokers that are compared: where each is, how it is set up, started and ended.

Each is configured for speed where that is a matter of settings, and otherwise as it comes. A
broker is started on a free port of loopback and ended by its process id.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers.report import PeerFacts
from benchmarks.running import Failed, Gateway
from weft import distribution

START_S = 10
# A user's path leaves out where Debian puts servers.
_PATH = f"{os.defpath}:/usr/local/sbin:/usr/sbin:/sbin"
_MOSQUITTO = """\
listener {port} 127.0.0.1
allow_anonymous true
set_tcp_nodelay true
max_queued_messages 0
max_inflight_messages 0
log_type none
user root
"""


class Running(NamedTuple):
    """A broker that takes connections, and every process it consists of."""

    port: int
    pids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Peer:
    """One broker. `{port}` and `{folder}` stand for values of one start.

    Weft's own config is its settings, as JSON.
    """

    name: str
    title: str
    protocol: str
    program: str | None
    settings: str
    arguments: tuple[str, ...] = ()
    config: str = ""
    version_argument: str = "--version"
    # What tells it from others of the same title.
    variant: str = ""

    @property
    def version(self) -> str:
        """What the broker says it is."""
        if self.program is None:
            return distribution.installed_version()
        said = subprocess.run(
            [self.program, self.version_argument],
            capture_output=True,
            text=True,
            timeout=START_S,
            check=False,
        )
        words = said.stdout.replace("=", " ").replace(":", " ").split()
        return next(word.lstrip("v") for word in words if word.lstrip("v")[:1].isdigit())

    @property
    def is_installed(self) -> bool:
        """Whether it can be started here."""
        return self.program is None or Path(self.program).exists()

    def facts(self) -> PeerFacts:
        """What a reader of the report is told about it."""
        version = self.version
        return PeerFacts(
            name=self.name,
            title=", ".join(filter(None, (f"{self.title} {version}", self.variant))),
            version=version,
            settings=self.settings,
            command=[Path(self.program or "weft serve").name, *self.arguments],
            config=self.config,
        )

    @contextlib.contextmanager
    def running(self, where: Path | None = None) -> Iterator[Running]:
        """Start it, wait until it takes connections, and end it; its files are gone then.

        Args:
            where: the folder in which its own folder is made; any temporary one if left out.
        """
        with tempfile.TemporaryDirectory(prefix="weft-peer-", dir=where) as folder:
            if self.program is None:
                settings = json.loads(_filled(self.config or "{}", 0, folder))
                with Gateway(**settings) as gateway:
                    yield Running(gateway.port, (gateway.front, gateway.worker()))
                return
            port = free_port()
            Path(folder, "config").write_text(_filled(self.config, port, folder))
            words = [_filled(word, port, folder) for word in self.arguments]
            process = subprocess.Popen(
                [self.program, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:
                _wait_until_ready(process, port)
                yield Running(port, (process.pid,))
            finally:
                _end(process)


def _filled(text: str, port: int, folder: str) -> str:
    return text.replace("{port}", str(port)).replace("{folder}", folder)


def _debian(name: str) -> str:
    return shutil.which(name, path=_PATH) or f"/usr/sbin/{name}"


NATS = ("--addr", "127.0.0.1", "--port", "{port}")
# Its protected mode knows only one address of loopback, and the load comes from several.
REDIS = ("--bind", "127.0.0.1", "--port", "{port}", "--protected-mode", "no", "--dir", "{folder}")
_REDIS_SPEED = ("--save", "", "--appendonly", "no", "--client-output-buffer-limit", "pubsub 0 0 0")

PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            "weft",
            "weft",
            "weft",
            None,
            "defaults, limits, stamps, meters and bounds on slow readers included; "
            "front and worker count",
        ),
        Peer(
            "nats29",
            "nats-server",
            "nats",
            _debian("nats-server"),
            "defaults",
            NATS,
        ),
        Peer(
            "nats215",
            "nats-server",
            "nats",
            str(Path(sys.executable).with_name("nats-server")),
            "defaults",
            NATS,
        ),
        Peer(
            "redis",
            "redis",
            "redis",
            _debian("redis-server"),
            "nothing saved, no append-only file, no limit on what a subscriber is owed",
            (*REDIS, *_REDIS_SPEED),
        ),
        Peer(
            "mosquitto",
            "mosquitto",
            "mqtt",
            _debian("mosquitto"),
            "quality of service 0, TCP_NODELAY, no limit on what is queued or in flight, no log",
            ("-c", "{folder}/config"),
            _MOSQUITTO,
            "-h",
        ),
    )
}


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def _wait_until_ready(process: "subprocess.Popen[bytes]", port: int) -> None:
    ends = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < ends:
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        time.sleep(0.01)
    raise Failed(f"it did not start: status {process.poll()}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(START_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(START_S)
