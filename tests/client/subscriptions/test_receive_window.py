import threading

import pytest

from weft.client.status import Gap
from weft.client.subscriptions.receive_window import EASE_BYTES, ITEM_COST_BYTES, ReceiveWindow

OVERSHOOT = 1000
SIZE = 100
COST = SIZE + ITEM_COST_BYTES


class Tap:
    """A flow that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def hold(self, _: ReceiveWindow) -> None:
        self.asked.append("hold")

    def ease(self, _: ReceiveWindow) -> None:
        self.asked.append("ease")

    def overshoot_bytes(self) -> int:
        return OVERSHOOT


def intake(items: int = 4) -> tuple[ReceiveWindow, Tap]:
    tap = Tap()
    return ReceiveWindow(items * COST, tap), tap


def test_below_its_limit_it_asks_for_nothing() -> None:
    bound, tap = intake()
    assert all(bound.admit(SIZE) for _ in range(4))
    assert bound.held_bytes == 4 * COST
    assert tap.asked == []


def test_over_its_limit_it_asks_once_to_hold() -> None:
    bound, tap = intake()
    assert all(bound.admit(SIZE) for _ in range(6))
    assert bound.is_full
    assert tap.asked == ["hold"]


def test_half_empty_it_asks_once_to_go_on() -> None:
    bound, tap = intake()
    for _ in range(5):
        bound.admit(SIZE)
    bound.release(SIZE)
    bound.release(SIZE)
    assert tap.asked == ["hold"]
    bound.release(SIZE)
    bound.release(SIZE)
    assert tap.asked == ["hold", "ease"]
    assert not bound.is_full


def test_one_that_holds_much_goes_on_before_it_is_half_empty() -> None:
    tap = Tap()
    bound = ReceiveWindow(8 * EASE_BYTES, tap)
    piece = EASE_BYTES // 4
    while not bound.is_full:
        bound.admit(piece)
    for _ in range(4):
        bound.release(piece)
    assert tap.asked == ["hold"]
    bound.release(piece)
    assert tap.asked == ["hold", "ease"]


def test_beyond_twice_its_limit_and_what_was_under_way_it_admits_nothing() -> None:
    bound, _ = intake()
    count = 0
    while bound.admit(SIZE):
        count += 1
    assert count == (2 * 4 * COST + OVERSHOOT) // COST
    bound.release(SIZE)
    assert bound.admit(SIZE)


def test_one_alone_is_admitted_however_large() -> None:
    bound, _ = intake()
    assert bound.admit(100 * COST)
    assert not bound.admit(SIZE)


def test_the_news_of_a_loss_always_has_room() -> None:
    bound, _ = intake()
    while bound.admit(SIZE):
        pass
    held = bound.held_bytes
    assert bound.gap(7) == Gap("full", 7)
    assert bound.held_bytes == held + ITEM_COST_BYTES
    bound.release(0)
    assert bound.held_bytes == held


def test_whoever_asks_is_told_when_it_is_empty() -> None:
    bound, _ = intake()
    told: list[int] = []
    bound.admit(SIZE)
    bound.admit(SIZE)

    def note() -> None:
        told.append(bound.held_bytes)

    bound.when_empty(note)
    bound.release(SIZE)
    assert told == []
    bound.release(SIZE)
    assert told == [0]
    bound.forget(note)
    bound.admit(SIZE)
    bound.release(SIZE)
    assert told == [0]


def test_whoever_asks_an_empty_one_is_told_at_once() -> None:
    told: list[int] = []
    intake()[0].when_empty(lambda: told.append(0))
    assert told == [0]


def test_one_that_was_emptied_while_it_asked_to_hold_goes_on() -> None:
    class Emptied(Tap):
        """As if another thread took everything between the question and the next line."""

        def hold(self, bound: ReceiveWindow) -> None:
            super().hold(bound)
            bound._taken = bound._arrived

    tap = Emptied()
    bound = ReceiveWindow(COST, tap)
    bound.admit(SIZE)
    bound.admit(SIZE)
    assert tap.asked == ["hold", "ease"]
    assert not bound.is_full


@pytest.mark.parametrize("takers", [1, 3])
def test_takers_on_other_threads_never_leave_it_held(takers: int) -> None:
    go = threading.Semaphore(0)
    arrived = threading.Semaphore(0)

    class Gate(Tap):
        def ease(self, _: ReceiveWindow) -> None:
            go.release()

    bound = ReceiveWindow(20 * COST, Gate())
    count = 5000

    def take() -> None:
        while arrived.acquire(timeout=30) and not is_done:
            bound.release(SIZE)

    is_done: list[bool] = []
    threads = [threading.Thread(target=take) for _ in range(takers)]
    for thread in threads:
        thread.start()
    for _ in range(count):
        assert bound.admit(SIZE)
        arrived.release()
        if bound.is_full:
            assert go.acquire(timeout=30)
    emptied = threading.Event()
    bound.when_empty(emptied.set)
    assert emptied.wait(30)
    is_done.append(True)
    arrived.release(takers)
    for thread in threads:
        thread.join(30)


def test_two_who_wait_for_it_to_be_empty_are_both_told() -> None:
    bound, _ = intake()
    told: list[str] = []
    bound.admit(SIZE)
    bound.when_empty(lambda: told.append("first"))
    bound.when_empty(lambda: told.append("second"))
    bound.release(SIZE)
    assert told == ["first", "second"]


def test_whoever_waits_is_let_go_when_nobody_takes_any_more() -> None:
    bound, _ = intake()
    told: list[int] = []
    bound.admit(SIZE)
    bound.when_empty(lambda: told.append(bound.held_bytes))
    bound.leave()
    assert told == [COST]
