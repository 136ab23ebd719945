"""System calls on the message path and the accept path, on plain descriptors.

Compiled modules use the C functions of the same names in syscalls.pxd.
"""

import os
import socket

NOT_NOW = -1
BROKEN = -2


def send(fd: int, data: bytearray, start: int, length: int) -> int:
    """Send a range; return the number of bytes sent, NOT_NOW, or BROKEN on a fatal error."""
    try:
        with memoryview(data) as view:
            return os.write(fd, view[start : start + length])
    except (BlockingIOError, InterruptedError):
        return NOT_NOW
    except OSError:
        return BROKEN


def receive(fd: int, data: bytearray, start: int, length: int) -> int:
    """Read into a range; return the number of bytes, 0 at the end, NOT_NOW or BROKEN."""
    try:
        with memoryview(data) as view:
            return os.readv(fd, [view[start : start + length]])
    except (BlockingIOError, InterruptedError):
        return NOT_NOW
    except OSError:
        return BROKEN


def peek(fd: int, data: bytearray, length: int) -> int:
    """Copy readable bytes to the start of a buffer without consuming them, like receive()."""
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
    """Accept a connection: its non-blocking descriptor, and the peer's host and port.

    Raises:
        OSError: no connection is waiting (BlockingIOError), it is gone, or no descriptor is free.
    """
    borrowed = socket.socket(fileno=listening)
    try:
        sock, address = borrowed.accept()
    finally:
        borrowed.detach()
    sock.setblocking(False)
    return sock.detach(), address[0], address[1]
