"""Spark masters: the settings and environment that each needs, and whether it can be reached.

A job is the same on every master. The differences are here: the preparations of this process, the
settings for a machine or a cluster, and what a Spark Connect server decides itself.
"""

import contextlib
import importlib.util
import os
import queue
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from weft.errors import BadOption
from weft.spark.java import java_home

if TYPE_CHECKING:
    import grpc

REACH_S = 10.0

_HERE = {
    "spark.ui.enabled": "false",
    # The default manager starts some fifty processes per batch, which a local disk does not need.
    # On shared storage this one may rename in steps that other processes see.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
_IN_THIS_PROCESS = {"spark.ui.showConsoleProgress": "false"}
# Variables that may bring other settings, or another Spark.
_FROM_OUTSIDE = (
    *("PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME"),
    "SPARK_REMOTE",
)
# Local sessions only, and the machine's own name may not resolve.
_LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}


@dataclass(frozen=True, slots=True)
class Needs:
    """Requirements of one kind of master for this process."""

    settings: dict[str, str] = field(default_factory=dict)
    # Defaults: variables that the user has set take precedence.
    environment: dict[str, str] = field(default_factory=dict)
    has_java: bool = True


def chosen(master: str | None) -> str | None:
    """Return the given master, else the one of SPARK_REMOTE, else this machine.

    None in a program that `spark-submit` runs: its master is already set.
    """
    if master is not None:
        return master
    remote = os.environ.get("SPARK_REMOTE", "")
    if is_connect(remote):
        return remote
    return None if "PYSPARK_GATEWAY_PORT" in os.environ else "local[*]"


def is_connect(master: str | None) -> bool:
    """Return whether a master is the address of a Spark Connect server."""
    return master is not None and master.startswith("sc://")


def needs_of(master: str | None) -> Needs:
    """Return the requirements of a master."""
    if is_connect(master):
        return Needs(has_java=False)
    if master is None:
        return Needs(_IN_THIS_PROCESS, has_java=False)
    # Without these, executors would take another Python from their PATH.
    pythons = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    if master.startswith("local"):
        return Needs(_IN_THIS_PROCESS | _HERE | _few_tasks(), pythons | _LOOPBACK)
    if master.startswith("spark://") and all(
        host in ("localhost", "127.0.0.1") for host, _ in _addresses(master)
    ):
        return Needs(_IN_THIS_PROCESS, pythons | _LOOPBACK)
    return Needs(_IN_THIS_PROCESS, pythons)


def _few_tasks() -> dict[str, str]:
    """Return settings in place of Spark's 200 partitions after a shuffle, each a task with state.

    On one machine a task costs more than the work of most: use one per CPU, at least 2.
    """
    return {"spark.sql.shuffle.partitions": str(max(len(os.sched_getaffinity(0)), 2))}


def has_only_own_tables(master: str | None) -> bool:
    """Return whether a session certainly has no tables except those of this process.

    External settings may name a catalog with others.
    """
    if any(os.environ.get(name) for name in _FROM_OUTSIDE):
        return False
    found = importlib.util.find_spec("pyspark")
    folders = found.submodule_search_locations if found is not None else None
    has_defaults = any((Path(folder) / "conf").exists() for folder in folders or ())
    return not has_defaults and (master is None or master.startswith("local"))


def prepare(needs: Needs) -> None:
    """Set the environment for a session.

    Raises:
        BadOption: No suitable Java.
    """
    if needs.has_java:
        os.environ["JAVA_HOME"] = java_home()
    for name, value in needs.environment.items():
        os.environ.setdefault(name, value)


def check_reached(master: str | None, timeout_s: float = REACH_S) -> None:
    """Check that the master is reachable, because Spark itself would retry for many minutes.

    Raises:
        BadOption: No answer, or an invalid address.
    """
    if is_connect(master):
        _check_connect(str(master), timeout_s)
    elif master is not None and master.startswith("spark://"):
        _check_standalone(master, timeout_s)


def _check_standalone(master: str, timeout_s: float) -> None:
    reasons = []
    for address in _addresses(master):
        try:
            socket.create_connection(address, timeout_s).close()
        except OSError as error:
            reasons.append(f"{address[0]}:{address[1]}: {error}")
        else:
            return
    raise BadOption(f"no Spark master answers at {master} ({'; '.join(reasons)})")


def _addresses(master: str) -> list[tuple[str, int]]:
    """Return the addresses of a master; standby masters are separated by commas."""
    found = []
    for each in master.removeprefix("spark://").split(","):
        with contextlib.suppress(ValueError):
            parts = urlsplit(f"//{each}")
            if parts.hostname and parts.port:
                found.append((parts.hostname, parts.port))
                continue
        raise BadOption(f"master {master!r} is not of the form spark://host:port")
    return found


def _check_connect(master: str, timeout_s: float) -> None:
    try:
        from pyspark.sql.connect.client import DefaultChannelBuilder  # noqa: PLC0415  # needs more
    except ImportError as error:
        raise BadOption(
            f'Spark Connect needs more packages ({error}): pip install "weft-mesh[spark]"'
        ) from error
    try:
        builder = DefaultChannelBuilder(master)
    except ValueError as error:
        # Not the address itself: it may hold a token.
        raise BadOption(f"the master is not of the form sc://host:port: {error}") from error
    channel = builder.toChannel()
    try:
        if not _is_ready(channel, timeout_s):
            raise BadOption(f"no Spark Connect server answers at sc://{builder.endpoint}")
    finally:
        channel.close()


def _is_ready(channel: "grpc.Channel", timeout_s: float) -> bool:
    from grpc import ChannelConnectivity  # noqa: PLC0415  # only Spark Connect needs it

    states: queue.SimpleQueue[ChannelConnectivity] = queue.SimpleQueue()
    channel.subscribe(states.put, try_to_connect=True)
    end = time.monotonic() + timeout_s
    while True:
        try:
            state = states.get(timeout=max(end - time.monotonic(), 0))
        except queue.Empty:
            return False
        if state is ChannelConnectivity.READY:
            return True
        if state is ChannelConnectivity.TRANSIENT_FAILURE:
            return False
