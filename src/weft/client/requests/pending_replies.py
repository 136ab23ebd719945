"""Who awaits an answer, and which answer is whose.

A request is known by its reply subject, a ping by its body. An OK or ERROR carries the subject and
reply of what it answers, and answers of one kind and name come in the order of the questions; so
whoever gives up leaves its place in the line empty, not gone. Everything here ends with the
connection.
"""

from collections import deque
from typing import Protocol

from weft.errors import Overloaded, WeftError


class Waiter(Protocol):
    """Whoever awaits an answer; each is told once, but a gathering as often as answers come."""

    def answered(self, frame: bytes) -> None:
        """This is the answer: a MESSAGE, OK or PONG."""

    def failed(self, error: WeftError) -> None:
        """The gateway said no."""

    def lost(self, error: WeftError) -> None:
        """The connection ended before an answer came."""


# A frame that wants an OK: whether it is a message, its subject, its reply.
Question = tuple[bool, bytes, bytes]


class Waiting:
    """Everything on one connection that awaits an answer, bounded in number."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._requests: dict[bytes, Waiter] = {}
        self._questions: dict[Question, deque[Waiter | None]] = {}
        self._pings: dict[bytes, Waiter] = {}
        self._places: dict[Waiter, bytes | Question] = {}
        self._abandoned = 0

    def __len__(self) -> int:
        return len(self._places)

    def add_request(self, waiter: Waiter, reply: bytes) -> None:
        """Await messages to a reply subject, until forget() is called."""
        self._admit(waiter, reply)
        self._requests[reply] = waiter

    def add_question(self, waiter: Waiter, question: Question) -> None:
        """Await the OK or ERROR for a frame that is sent now."""
        self.check()
        self.add_checked_question(waiter, question)

    def add_checked_question(self, waiter: Waiter, question: Question) -> None:
        """Await the OK or ERROR for a frame that is sent now; check() was called for it before."""
        self._places[waiter] = question
        self._questions.setdefault(question, deque()).append(waiter)

    def add_ping(self, waiter: Waiter, body: bytes) -> None:
        """Await the PONG with this body."""
        self._admit(waiter, body)
        self._pings[body] = waiter

    def forget(self, waiter: Waiter) -> None:
        """Await nothing more for a waiter, if anything was."""
        place = self._places.pop(waiter, None)
        if isinstance(place, bytes):
            self._requests.pop(place, None)
            self._pings.pop(place, None)
        elif place is not None:
            line = self._questions[place]
            line[line.index(waiter)] = None
            self._abandoned += 1

    def withdraw(self, waiter: Waiter) -> None:
        """What the waiter asks was never sent: no answer comes, so no place is kept for one."""
        place = self._places.get(waiter)
        self.forget(waiter)
        if isinstance(place, tuple):
            line = self._questions[place]
            # Nobody has asked since, so that the place is the last one.
            line.pop()
            self._abandoned -= 1
            if not line:
                del self._questions[place]

    def request(self, reply: bytes) -> Waiter | None:
        """Whoever awaits messages to a reply subject."""
        return self._requests.get(reply)

    def take_question(self, question: Question) -> Waiter | None:
        """Whoever is next in line for this answer; None if it gave up, or nobody asked."""
        line = self._questions.get(question)
        if line is None:
            return None
        waiter = line.popleft()
        if not line:
            del self._questions[question]
        if waiter is None:
            self._abandoned -= 1
        else:
            del self._places[waiter]
        return waiter

    def take_ping(self, body: bytes) -> Waiter | None:
        """Whoever awaits this PONG."""
        waiter = self._pings.pop(body, None)
        if waiter is not None:
            del self._places[waiter]
        return waiter

    def take_all(self) -> list[Waiter]:
        """Everybody, because the connection is gone."""
        waiters = list(self._places)
        self._requests.clear()
        self._questions.clear()
        self._pings.clear()
        self._places.clear()
        self._abandoned = 0
        return waiters

    def check(self, more: int = 0) -> None:
        """Make sure that one more answer may be awaited, beside those that soon will be.

        Raises:
            Overloaded: it may not.
        """
        if len(self._places) + self._abandoned + more >= self._limit:
            raise Overloaded(f"{self._limit} answers are awaited already")

    def _admit(self, waiter: Waiter, place: bytes) -> None:
        self.check()
        self._places[waiter] = place
