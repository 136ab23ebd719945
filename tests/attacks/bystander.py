"""Ordinary clients whose conversation must go on whatever others do, counted exactly."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from tests.attacks.gateway_process import WAIT_S, GatewayProcess

from weft.client.sync.connection import Connection

MESSAGES = 20
_NUMBERS = itertools.count(1)


class Bystander:
    """One client that publishes and asks, and one that hears and answers."""

    def __init__(self, gateway: GatewayProcess) -> None:
        self._speaker = Connection(gateway.address, name="bystander.speaker", tls=gateway.tls)
        self._listener = Connection(gateway.address, name="bystander.listener", tls=gateway.tls)
        number = next(_NUMBERS)
        self._says = f"bystander.{number}"
        # Whoever subscribes to everything would be asked as well; this is not part of everything.
        self._asks = f"_LOCAL.bystander.{number}"
        self._heard = self._listener.subscribe(self._says)
        self._listener.subscribe(self._asks, lambda asked: asked.respond(asked.payload))
        self._said = 0
        self.rounds = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._speaker.close()
        self._listener.close()

    def talk(self) -> None:
        """Say some things that must be heard in order, none doubled, and ask a question."""
        numbers = range(self._said, self._said + MESSAGES)
        self._said += MESSAGES
        for number in numbers:
            self._speaker.publish(self._says, b"%d" % number)
        assert [int(self._heard.next(WAIT_S).payload) for _ in numbers] == list(numbers)
        question = b"%d?" % self._said
        answer = self._speaker.send_request(self._asks, question, timeout=WAIT_S)
        assert answer.payload == question
        self.rounds += 1

    @contextmanager
    def talking(self) -> Iterator[None]:
        """Talk all the time while a block runs, and once more after it."""
        is_over = threading.Event()
        problems: list[BaseException] = []

        def go_on() -> None:
            try:
                while not is_over.is_set():
                    self.talk()
            except BaseException as problem:  # raised below, on the test's thread
                problems.append(problem)

        thread = threading.Thread(target=go_on, name="bystander")
        before = self.rounds
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()
        if problems:
            raise problems[0]
        assert self.rounds > before
        self.talk()

    def check(self) -> None:
        """Make sure that it never lost its connection."""
        assert self._speaker.statistics.connects == 1
        assert self._listener.statistics.connects == 1
