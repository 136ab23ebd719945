"""Where the other end of a connected socket is."""

import socket


def peer_address(fd: int) -> str:
    """Return the HOST:PORT that a descriptor is connected to.

    Empty for a socket without one: behind TLS a service has a pipe to the front, which deciphers.
    """
    borrowed = socket.socket(fileno=fd)
    try:
        if borrowed.family not in (socket.AF_INET, socket.AF_INET6):
            return ""
        host, port = borrowed.getpeername()[:2]
    except OSError:
        # It is gone already, which its door finds out when it reads.
        return ""
    finally:
        borrowed.detach()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
