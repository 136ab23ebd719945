"""Remote address of a connected socket."""

import socket


def peer_address(fd: int) -> str:
    """Return the HOST:PORT that a descriptor is connected to.

    Empty for a socket without one, such as the pipe from a front that terminates TLS.
    """
    borrowed = socket.socket(fileno=fd)
    try:
        if borrowed.family not in (socket.AF_INET, socket.AF_INET6):
            return ""
        host, port = borrowed.getpeername()[:2]
    except OSError:
        # Already disconnected, which its transport notices when it reads.
        return ""
    finally:
        borrowed.detach()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
