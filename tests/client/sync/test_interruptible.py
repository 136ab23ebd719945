import asyncio
import concurrent.futures
import queue
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.client.sync.test_callbacks import callbacks

from weft.client.sync.interruptible import PIECE_S, piece_of, result_of
from weft.client.sync.loop_thread import Background
from weft.client.sync.queue import Mailbox

WAITS: list[Callable[[], object]] = [
    lambda: result_of(concurrent.futures.Future()),
    lambda: Mailbox().take(None),
    lambda: Mailbox().take(3600),
    lambda: callbacks().pump(None),
    lambda: callbacks().pump(3600),
    lambda: callbacks().run_until(concurrent.futures.Future()),
    lambda: callbacks("callbacks").run_until(concurrent.futures.Future()),
]


def interrupted(wait: Callable[[], object]) -> None:
    """Wait, while a thread that is not the main one gets the signal: that ends no rest."""
    status = Path(f"/proc/self/task/{threading.main_thread().native_id}/status")

    def interrupt() -> None:
        # The number of times it came to rest is among these: the same means that it still does.
        seen = ""
        while seen != (seen := status.read_text()):
            time.sleep(0.05)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        if not is_over.wait(20):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    def give_up(*_: object) -> None:
        pytest.fail("the wait goes on")

    is_over = threading.Event()
    signal.signal(signal.SIGUSR1, give_up)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            wait()
    finally:
        is_over.set()
        thread.join(30)
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)


@pytest.mark.parametrize("wait", WAITS)
def test_an_interrupt_that_another_thread_got_ends_a_wait(wait: Callable[[], object]) -> None:
    interrupted(wait)


def test_it_ends_the_wait_for_a_coroutine() -> None:
    background = Background("the loop")
    never = asyncio.Event()
    interrupted(lambda: background.run(never.wait()))
    background.stop()


def test_a_result_that_is_an_error_in_time_is_raised() -> None:
    future: concurrent.futures.Future[None] = concurrent.futures.Future()
    future.set_exception(TimeoutError("of its own"))
    with pytest.raises(TimeoutError, match="of its own"):
        result_of(future)


def test_a_wait_with_an_end_is_not_longer_than_that() -> None:
    assert [piece_of(None), piece_of(3600), piece_of(0)] == [PIECE_S, PIECE_S, 0]
    with pytest.raises(queue.Empty):
        Mailbox().take(PIECE_S * 1.5)
