"""A few steps that no other thread may come between, when they are compiled without a lock.

Compiled, a thread keeps the interpreter's own lock until it runs Python code or waits, so the steps
between enter() and leave() are not interrupted as long as they do neither; the .pxd has nothing to
do. Interpreted, every step may be the last for now, and the lock is taken.
"""

from threading import Lock


def enter(lock: Lock) -> None:
    """Begin; nothing up to leave() may call Python code or wait."""
    lock.acquire()


def leave(lock: Lock) -> None:
    """End, whatever happened."""
    lock.release()
