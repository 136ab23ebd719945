"""Critical sections that need no lock when compiled.

A compiled thread keeps the GIL until it runs Python code or blocks. Between enter() and leave() it
does neither, so the functions in the .pxd do nothing. Interpreted code may be interrupted between
any two steps, so there the lock is taken.
"""

from threading import Lock


def enter(lock: Lock) -> None:
    """Enter the section; up to leave() nothing may call Python code or block."""
    lock.acquire()


def leave(lock: Lock) -> None:
    """Leave the section; call it in a `finally` block."""
    lock.release()
