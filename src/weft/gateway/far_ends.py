"""Where connections come from, as this gateway's own sockets say."""

import socket


def host_of(fd: int) -> str:
    """The address that a socket is connected with; empty if it is none of TCP."""
    if fd < 0:
        return ""
    borrowed = socket.socket(fileno=fd)
    try:
        is_tcp = borrowed.family in (socket.AF_INET, socket.AF_INET6)
        return str(borrowed.getpeername()[0]) if is_tcp else ""
    except OSError:
        # It is gone by now.
        return ""
    finally:
        borrowed.detach()
