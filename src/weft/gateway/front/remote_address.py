"""Where connections come from, as this gateway's own sockets say.

What comes by TLS reaches its service through a pair of Unix sockets, and nothing else goes along
with a descriptor: so the front's end of the pair is named after whoever it speaks for.
"""

import secrets
import socket

_NAMED = b"\0weft-far-end/"


def name_after(sock: socket.socket, peer: str) -> None:
    """Have whoever gets the other end of a pair see whom this one speaks for: host and port."""
    sock.bind(b"%b%b/%b" % (_NAMED, secrets.token_hex(8).encode(), peer.encode()))


def host_of(fd: int) -> str:
    """The address that a socket is connected with, or speaks for; empty if there is none."""
    if fd < 0:
        return ""
    borrowed = socket.socket(fileno=fd)
    try:
        name = borrowed.getpeername()
        if borrowed.family == socket.AF_UNIX:
            return _host_in(name)
        return str(name[0])
    except OSError:
        # It is gone by now.
        return ""
    finally:
        borrowed.detach()


def _host_in(name: str | bytes) -> str:
    """Whom a pair was named after; names without a leading zero are paths of other sockets."""
    if not isinstance(name, bytes) or not name.startswith(_NAMED):
        return ""
    peer = name.rpartition(b"/")[2].decode()
    return peer.rpartition(":")[0].strip("[]")
