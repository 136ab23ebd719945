import logging
from collections.abc import Callable

import pytest
from tests.client.sync.test_callbacks import Tap

from weft.client.publish.encode import message_frame
from weft.client.received import BlockingReceived
from weft.client.status import Reporter
from weft.client.subscriptions.receive_window import ReceiveWindow
from weft.client.sync.callbacks import Callbacks
from weft.client.sync.dispatch_batch import Handling


class Nobody:
    """A connection that nothing is published on here."""

    def answer(self, asked: bytes, body: object, *, is_failure: bool = False) -> None:
        """Never here."""


class Town:
    """A handler, what it was given, and what it raised."""

    def __init__(self, handler: Callable[[bytes], object] = lambda _: None) -> None:
        self.given: list[bytes] = []
        self.raised: list[Exception] = []
        self.intake = ReceiveWindow(1 << 20, Tap())
        self.callbacks = Callbacks(self.intake, Reporter(logging.getLogger("weft.test"), "me.1"))

        def handle(message: BlockingReceived) -> None:
            self.given.append(message.payload)
            handler(message.payload)

        self.handling = Handling(handle, Nobody(), self.callbacks, self.raised.append)

    def run(self, *payloads: bytes) -> int:
        frames = [message_frame("a", payload) for payload in payloads]
        for frame in frames:
            assert self.intake.admit(len(frame))
        return self.handling.run(frames)


def test_messages_are_handled_in_order_and_released() -> None:
    town = Town()
    payloads = [b"%d" % number for number in range(150)]
    assert town.run(*payloads) == 150
    assert town.given == payloads
    assert town.intake.held_bytes == 0


def test_what_a_handler_raises_is_told_and_the_rest_is_handled() -> None:
    def fail(payload: bytes) -> None:
        if payload == b"2":
            raise ValueError("no good")

    town = Town(fail)
    assert town.run(b"1", b"2", b"3") == 3
    assert town.given == [b"1", b"2", b"3"]
    assert [str(error) for error in town.raised] == ["no good"]
    assert town.intake.held_bytes == 0


@pytest.mark.parametrize("discard", ["the subscription", "the connection"])
def test_from_the_moment_it_is_told_to_it_throws_away(discard: str) -> None:
    def stop(_: bytes) -> None:
        if discard == "the subscription":
            town.handling.is_discarding = True
        else:
            town.callbacks.discard()

    town = Town(stop)
    town.run(b"1", b"2", b"3")
    assert town.given == [b"1"]
    assert town.intake.held_bytes == 0


def test_an_interrupt_is_raised_and_the_rest_is_due_again() -> None:
    def interrupt(payload: bytes) -> None:
        if payload == b"2":
            raise KeyboardInterrupt

    town = Town(interrupt)
    with pytest.raises(KeyboardInterrupt):
        town.run(b"1", b"2", b"3", b"4")
    assert town.intake.held_bytes > 0
    town.callbacks.put(town.given.append, b"later")
    assert town.callbacks.pump(0) == 3
    assert town.given == [b"1", b"2", b"3", b"4", b"later"]
    assert town.intake.held_bytes == 0
