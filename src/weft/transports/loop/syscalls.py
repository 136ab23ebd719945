"""The system calls that are made for each message or for each connection, on plain descriptors.

Compiled modules take the C bodies of the same names in kernel.pxd.
"""

import os
import socket

NOT_NOW = -1
BROKEN = -2


def send(fd: int, data: bytearray, start: int, length: int) -> int:
    """Send a stretch; return how much of it went, or NOT_NOW, or BROKEN if nothing ever will."""
    try:
        with memoryview(data) as view:
            return os.write(fd, view[start : start + length])
    except (BlockingIOError, InterruptedError):
        return NOT_NOW
    except OSError:
        return BROKEN


def receive(fd: int, data: bytearray, start: int, length: int) -> int:
    """Read into a stretch; return how much came, 0 at the end, NOT_NOW or BROKEN."""
    try:
        with memoryview(data) as view:
            return os.readv(fd, [view[start : start + length]])
    except (BlockingIOError, InterruptedError):
        return NOT_NOW
    except OSError:
        return BROKEN


def peek(fd: int, data: bytearray, length: int) -> int:
    """Look at what can be read, from the start of a buffer on; return as receive() does."""
    borrowed = socket.socket(fileno=fd)
    try:
        return borrowed.recv_into(data, length, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except (BlockingIOError, InterruptedError):
        return NOT_NOW
    except OSError:
        return BROKEN
    finally:
        borrowed.detach()


def accept(listening: int) -> tuple[int, str, int]:
    """Take one connection off a port: its descriptor, non-blocking, and its peer's host and port.

    Raises:
        OSError: nobody is there at the moment (BlockingIOError), or it is gone, or has no place.
    """
    borrowed = socket.socket(fileno=listening)
    try:
        sock, address = borrowed.accept()
    finally:
        borrowed.detach()
    sock.setblocking(False)
    return sock.detach(), address[0], address[1]
