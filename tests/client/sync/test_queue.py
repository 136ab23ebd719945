import queue

import pytest

from weft.client.sync.queue import Mailbox


def test_calls_are_taken_in_order() -> None:
    box = Mailbox()
    box.put(print, 1)
    box.put(repr, 2)
    assert [box.take(None), box.take(None)] == [(print, 1), (repr, 2)]


@pytest.mark.parametrize("timeout", [0, 0.01])
def test_nothing_comes_of_nothing(timeout: float) -> None:
    with pytest.raises(queue.Empty):
        Mailbox().take(timeout)


def test_every_taker_sees_the_end_after_what_is_there() -> None:
    box = Mailbox()
    box.put(print, 1)
    box.end()
    assert [box.take(None), box.take(None), box.take(None)] == [(print, 1), None, None]
