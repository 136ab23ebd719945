"""Remote address of a connection, also behind the front's TLS termination.

A TLS connection reaches its service through a pair of Unix sockets, and no data accompanies a
descriptor: so the front's end of the pair is bound to a name that contains the peer's address.
"""

import secrets
import socket

_NAMED = b"\0weft-far-end/"


def name_after(sock: socket.socket, peer: str) -> None:
    """Name an end of a pair after a peer, host and port, for host_of() at the other end."""
    sock.bind(b"%b%b/%b" % (_NAMED, secrets.token_hex(8).encode(), peer.encode()))


def host_of(fd: int) -> str:
    """Return the host that a socket is connected with, directly or by TLS; empty if unknown."""
    if fd < 0:
        return ""
    borrowed = socket.socket(fileno=fd)
    try:
        name = borrowed.getpeername()
        if borrowed.family == socket.AF_UNIX:
            return _host_in(name)
        return str(name[0])
    except OSError:
        # The peer has closed it.
        return ""
    finally:
        borrowed.detach()


def _host_in(name: str | bytes) -> str:
    """Return the host in the name of a pair; names without a leading zero are paths."""
    if not isinstance(name, bytes) or not name.startswith(_NAMED):
        return ""
    peer = name.rpartition(b"/")[2].decode()
    return peer.rpartition(":")[0].strip("[]")
