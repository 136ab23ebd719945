"""The sockets of lanes in this process, and how they are broken: from inside, and by the system."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

_NAME = b"\0weft-lane-"


def lanes(gateway_port: int, *, is_tcp: bool = False) -> list[socket.socket]:
    """The ends of lanes in this process, each a copy that the caller closes."""
    found = []
    for each in own_sockets():
        if is_lane(each, gateway_port) and (not is_tcp or each.family == socket.AF_INET):
            found.append(each)
        else:
            each.close()
    return found


def own_sockets() -> Iterator[socket.socket]:
    """Every socket of this process, each a copy that the caller closes."""
    for entry in list(Path("/proc/self/fd").iterdir()):
        try:
            if entry.readlink().name.startswith("socket:"):
                yield socket.socket(fileno=os.dup(int(entry.name)))
        except OSError:
            # It was closed since it was listed.
            continue


def is_lane(found: socket.socket, gateway_port: int) -> bool:
    """Say if a socket is one end of a lane."""
    try:
        near, far = found.getsockname(), found.getpeername()
    except OSError:
        return False
    if found.family == socket.AF_UNIX:
        return any(isinstance(each, bytes) and each.startswith(_NAME) for each in (near, far))
    return found.family == socket.AF_INET and gateway_port not in (near[1], far[1])


def is_to(found: socket.socket, gateway_port: int) -> bool:
    """Say if a socket is a connection to the gateway."""
    try:
        return found.family == socket.AF_INET and found.getpeername()[1] == gateway_port
    except OSError:
        return False


def shut(found: socket.socket) -> None:
    """End a connection under whoever uses it."""
    with closing(found):
        try:
            found.shutdown(socket.SHUT_RDWR)
        except OSError:
            # The other end was faster.
            return


def killed(found: socket.socket) -> bool:
    """Have the system destroy a TCP connection; False if it does not."""
    with closing(found):
        try:
            near, far = found.getsockname(), found.getpeername()
        except OSError:
            return False
    ports = f"( sport = :{near[1]} and dport = :{far[1]} )"
    done = subprocess.run(
        ("ss", "--kill", "--no-header", "--tcp", ports), check=False, capture_output=True
    )
    return done.returncode == 0 and done.stdout.strip() != b""


def why_not_killed() -> str:
    """Why the system destroys no connections here; empty if it does."""
    if os.geteuid() != 0:
        return "only root can have connections destroyed"
    if shutil.which("ss") is None:
        return "there is no ss"
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as tried,
    ):
        return "" if killed(tried.dup()) else "ss --kill does nothing here"
