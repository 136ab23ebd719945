import concurrent.futures
import logging
import sys
import threading

import pytest

from weft.client.status import Reporter, Status, What
from weft.client.subscriptions.receive_window import ReceiveWindow
from weft.client.sync.callbacks import NEWS_MAX, Callbacks
from weft.errors import NotOpen, UsageError


class Tap:
    """A flow that never has to do anything."""

    def hold(self, _: ReceiveWindow) -> None:
        """Never here."""

    def ease(self, _: ReceiveWindow) -> None:
        """Never here."""

    def overshoot_bytes(self) -> int:
        return 0


def callbacks(thread: str | None = None) -> Callbacks:
    made = Callbacks(ReceiveWindow(1000, Tap()), Reporter(logging.getLogger("weft.test"), "me.1"))
    made.start(thread)
    return made


def test_callbacks_run_on_a_thread_of_their_own() -> None:
    running = callbacks("callbacks")
    ran: concurrent.futures.Future[str] = concurrent.futures.Future()
    running.put(lambda _: ran.set_result(threading.current_thread().name), None)
    assert ran.result(30) == "callbacks"
    running.stop()
    assert "callbacks" not in {thread.name for thread in threading.enumerate()}


def test_what_is_due_runs_before_the_end() -> None:
    running = callbacks("callbacks")
    said: list[int] = []
    for number in range(100):
        running.put(said.append, number)
    running.stop()
    assert said == list(range(100))


def test_a_callback_may_end_its_own_thread() -> None:
    running = callbacks("callbacks")
    stopped = threading.Event()

    def stop(_: None) -> None:
        running.stop()
        stopped.set()

    running.put(stop, None)
    assert stopped.wait(30)


def test_a_callback_that_exits_does_not_end_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    running = callbacks("callbacks")
    done = threading.Event()
    running.put(sys.exit, "enough")
    running.put(lambda _: done.set(), None)
    assert done.wait(30)
    running.stop()
    assert "SystemExit('enough')" in caplog.text


def test_pumped_ones_run_where_they_are_pumped() -> None:
    pumped = callbacks()
    names: list[str] = []
    assert pumped.pump(0) == 0
    pumped.put(lambda _: names.append(threading.current_thread().name), None)
    pumped.put(names.append, "second")
    assert pumped.pump(0) == 2
    assert names == [threading.current_thread().name, "second"]
    assert pumped.pump(0.01) == 0


def test_pumping_waits_for_something_to_do() -> None:
    pumped = callbacks()
    said: list[int] = []
    thread = threading.Thread(target=pumped.put, args=(said.append, 1))
    thread.start()
    assert pumped.pump(None) == 1
    thread.join(30)
    assert said == [1]


def test_pumping_ends_even_if_callbacks_make_more() -> None:
    pumped = callbacks()

    def again(_: None) -> None:
        pumped.put(again, None)

    again(None)
    assert pumped.pump(0) == 1
    assert pumped.pump(0) == 1


def test_pumping_after_the_end_runs_what_is_left_and_does_not_wait() -> None:
    pumped = callbacks()
    said: list[int] = []
    pumped.put(said.append, 1)
    pumped.stop()
    assert pumped.pump(None) == 1
    assert pumped.pump(None) == 0
    assert said == [1]


def test_what_a_thread_runs_is_not_pumped() -> None:
    running = callbacks("callbacks")
    with pytest.raises(UsageError, match="callbacks='pumped'"):
        running.pump(0)
    running.stop()


def test_a_callback_does_not_pump() -> None:
    pumped = callbacks()
    errors: list[str] = []

    def pump(_: None) -> None:
        assert pumped.is_running_here()
        try:
            pumped.pump(0)
        except UsageError as error:
            errors.append(str(error))

    pumped.put(pump, None)
    pumped.pump(0)
    assert len(errors) == 1
    assert not pumped.is_running_here()


def test_pumped_ones_run_while_a_result_is_awaited() -> None:
    pumped = callbacks()
    result: concurrent.futures.Future[str] = concurrent.futures.Future()
    pumped.put(result.set_result, "done by a callback")
    assert pumped.run_until(result) == "done by a callback"


def test_waiting_for_a_result_ends_when_it_comes_from_elsewhere() -> None:
    pumped = callbacks()
    result: concurrent.futures.Future[str] = concurrent.futures.Future()
    thread = threading.Thread(target=result.set_result, args=("done elsewhere",))
    thread.start()
    assert pumped.run_until(result) == "done elsewhere"
    thread.join(30)


def test_waiting_for_a_result_ends_though_another_thread_pumps() -> None:
    pumped = callbacks()
    result: concurrent.futures.Future[str] = concurrent.futures.Future()
    got: concurrent.futures.Future[str] = concurrent.futures.Future()
    threads = [
        threading.Thread(target=pumped.pump, args=(None,)),
        threading.Thread(target=lambda: got.set_result(pumped.run_until(result))),
    ]
    for thread in threads:
        thread.start()
    result.set_result("done elsewhere")
    assert got.result(30) == "done elsewhere"
    # Whoever pumps is not woken by what is not for it.
    pumped.put(lambda _: None, None)
    for thread in threads:
        thread.join(30)


def test_a_pump_does_not_wait_for_the_callback_of_another() -> None:
    pumped = callbacks()
    began, go = threading.Event(), threading.Event()

    def block(_: None) -> None:
        began.set()
        assert go.wait(30)

    pumped.put(block, None)
    thread = threading.Thread(target=pumped.pump, args=(None,))
    thread.start()
    assert began.wait(30)
    pumped.put(lambda _: None, None)
    assert pumped.pump(0) == 0
    go.set()
    thread.join(30)
    assert pumped.pump(None) == 1


def test_pumping_is_not_cut_short_by_what_was_pumped_before() -> None:
    pumped = callbacks()
    ran = threading.Event()
    pumped.put(lambda _: None, None)
    assert pumped.pump(0) == 1
    thread = threading.Thread(target=lambda: ran.set() if pumped.pump(None) == 1 else None)
    thread.start()
    pumped.put(lambda _: None, None)
    assert ran.wait(30)
    thread.join(30)


def test_a_result_that_never_comes_because_of_the_end_is_not_open() -> None:
    pumped = callbacks()
    result: concurrent.futures.Future[str] = concurrent.futures.Future()
    result.cancel()
    with pytest.raises(NotOpen, match="closed meanwhile"):
        pumped.run_until(result)


def test_what_is_left_when_a_callback_breaks_off_is_run_by_the_next_pump() -> None:
    pumped = callbacks()
    said: list[int] = []

    def interrupted(_: None) -> None:
        raise KeyboardInterrupt

    pumped.put(interrupted, None)
    pumped.put(said.append, 1)
    with pytest.raises(KeyboardInterrupt):
        pumped.pump(0)
    assert pumped.pump(0) == 1
    assert said == [1]


def test_news_that_nobody_takes_is_bounded_and_counted() -> None:
    pumped = callbacks()
    said: list[int] = []
    for number in range(NEWS_MAX + 5):
        pumped.put_news(said.append, number)
    assert pumped.news_lost == 5
    assert pumped.pump(0) == NEWS_MAX
    pumped.put_news(said.append, -1)
    assert pumped.pump(0) == 1
    assert said == [*range(NEWS_MAX), -1]


def test_a_status_is_told_among_the_callbacks() -> None:
    pumped = callbacks()
    told: list[Status] = []
    status = Status(What.GAP, "lost")
    pumped.teller(told.append)(status)
    assert told == []
    pumped.pump(0)
    assert told == [status]


def test_a_status_callback_that_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fails(_: Status) -> None:
        raise RuntimeError("broken callback")

    pumped = callbacks()
    pumped.teller(fails)(Status(What.GAP, "lost"))
    assert pumped.pump(0) == 1
    assert "broken callback" in caplog.text
