"""^C during imports: the process ends by the signal, without a traceback."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_interrupt() -> Iterator[None]:
    """Let ^C end the process at once: imports turn a KeyboardInterrupt into other errors."""
    before = signal.getsignal(signal.SIGINT)
    is_ours = threading.current_thread() is threading.main_thread()
    if is_ours and before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        if is_ours and before is signal.default_int_handler:
            signal.signal(signal.SIGINT, before)
