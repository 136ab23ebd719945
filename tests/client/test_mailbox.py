import queue

import pytest

from weft.client.intake import Intake
from weft.client.mailbox import NEWS_MAX, Mailbox


class Tap:
    """A flow that never has to do anything."""

    def hold(self, _: Intake) -> None:
        """Never here."""

    def ease(self, _: Intake) -> None:
        """Never here."""

    def overshoot_bytes(self) -> int:
        return 0


def mailbox() -> Mailbox:
    return Mailbox(Intake(1000, Tap()))


def run_all(box: Mailbox) -> int:
    """Make every call that waits; how many there were."""
    count = 0
    while True:
        try:
            item = box.take(0)
        except queue.Empty:
            return count
        assert item is not None
        call, argument = item
        call(argument)
        count += 1


def test_calls_are_taken_in_order() -> None:
    box = mailbox()
    said: list[int] = []
    box.put(said.append, 1)
    box.put_news(said.append, 2)
    box.put(said.append, 3)
    assert len(box) == 3
    assert run_all(box) == 3
    assert said == [1, 2, 3]


@pytest.mark.parametrize("timeout", [0, 0.01])
def test_nothing_comes_of_nothing(timeout: float) -> None:
    with pytest.raises(queue.Empty):
        mailbox().take(timeout)


def test_every_taker_sees_the_end_after_what_is_there() -> None:
    box = mailbox()
    said: list[int] = []
    box.put(said.append, 1)
    box.end()
    assert box.take(None) == (said.append, 1)
    assert box.take(None) is None
    assert box.take(None) is None


def test_news_that_nobody_takes_is_bounded_and_counted() -> None:
    box = mailbox()
    said: list[int] = []
    for number in range(NEWS_MAX + 5):
        box.put_news(said.append, number)
    assert box.news_lost == 5
    assert run_all(box) == NEWS_MAX
    box.put_news(said.append, -1)
    assert run_all(box) == 1
    assert said == [*range(NEWS_MAX), -1]
