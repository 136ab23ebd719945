import asyncio
import concurrent.futures
import sys
import threading

import pytest

from weft.client.sync.loop_thread import Background
from weft.errors import NotOpen


async def where() -> str:
    return threading.current_thread().name


async def fails() -> None:
    raise ValueError("no good")


async def nothing() -> None:
    """Whatever."""


def test_a_coroutine_runs_on_the_other_thread() -> None:
    background = Background("the loop")
    assert background.run(where()) == "the loop"
    background.stop()


def test_what_it_raises_is_raised_here() -> None:
    background = Background("the loop")
    with pytest.raises(ValueError, match="no good"):
        background.run(fails())
    background.stop()


def test_a_call_is_made_on_the_other_thread() -> None:
    background = Background("the loop")
    called: concurrent.futures.Future[tuple[str, int]] = concurrent.futures.Future()
    background.defer(lambda n: called.set_result((threading.current_thread().name, n)), 7)
    assert called.result(30) == ("the loop", 7)
    background.stop()


def test_after_its_end_it_runs_nothing() -> None:
    background = Background("the loop")
    background.stop()
    background.stop()
    background.defer(pytest.fail, "called after the end")
    with pytest.raises(NotOpen):
        background.run(nothing())
    assert "the loop" not in {thread.name for thread in threading.enumerate()}


def test_whoever_still_waits_at_the_end_is_told() -> None:
    background = Background("the loop")
    began = threading.Event()
    ended: concurrent.futures.Future[BaseException] = concurrent.futures.Future()

    async def wait_for_ever() -> None:
        began.set()
        await asyncio.Event().wait()

    def call() -> None:
        try:
            background.run(wait_for_ever())
        except NotOpen as error:
            ended.set_result(error)

    thread = threading.Thread(target=call)
    thread.start()
    assert began.wait(30)
    background.stop()
    assert isinstance(ended.result(30), NotOpen)
    thread.join(30)


def test_without_uvloop_the_loop_is_asyncios(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    background = Background("the loop")
    assert background.run(where()) == "the loop"
    background.stop()
