"""Pending replies of one connection, and matching of answers to their waiters.

A request is identified by its reply subject, a ping by its body. OK and ERROR carry the subject and
reply of the frame that they answer, and equal ones arrive in the order of those frames; so a waiter
that gives up leaves an empty slot in the queue. All entries end with the connection.
"""

from collections import deque
from typing import Protocol

from weft.errors import Overloaded, WeftError


class Waiter(Protocol):
    """Receiver of an answer; called once, or, for gather(), for each answer."""

    def answered(self, frame: bytes) -> None:
        """Take the answer: a MESSAGE, OK or PONG frame."""

    def failed(self, error: WeftError) -> None:
        """Take the refusal of the gateway."""

    def lost(self, error: WeftError) -> None:
        """Take the loss of the connection before an answer."""


# Key of a frame that is answered with OK: whether it is a message, its subject, its reply.
Question = tuple[bool, bytes, bytes]


class PendingReplies:
    """Pending replies of one connection, bounded in number."""

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
        """Await messages to a reply subject, until forget()."""
        self._admit(waiter, reply)
        self._requests[reply] = waiter

    def add_question(self, waiter: Waiter, question: Question) -> None:
        """Await the OK or ERROR for a frame that is sent now."""
        self.check()
        self.add_checked_question(waiter, question)

    def add_checked_question(self, waiter: Waiter, question: Question) -> None:
        """Await the OK or ERROR for a frame that is sent now, after check()."""
        self._places[waiter] = question
        self._questions.setdefault(question, deque()).append(waiter)

    def add_ping(self, waiter: Waiter, body: bytes) -> None:
        """Await the PONG with this body."""
        self._admit(waiter, body)
        self._pings[body] = waiter

    def forget(self, waiter: Waiter) -> None:
        """Remove a waiter, if registered."""
        place = self._places.pop(waiter, None)
        if isinstance(place, bytes):
            self._requests.pop(place, None)
            self._pings.pop(place, None)
        elif place is not None:
            line = self._questions[place]
            line[line.index(waiter)] = None
            self._abandoned += 1

    def withdraw(self, waiter: Waiter) -> None:
        """Remove a waiter whose frame was never sent: no slot stays, because no answer arrives."""
        place = self._places.get(waiter)
        self.forget(waiter)
        if isinstance(place, tuple):
            line = self._questions[place]
            # No other waiter was added since, so the slot is the last one.
            line.pop()
            self._abandoned -= 1
            if not line:
                del self._questions[place]

    def request(self, reply: bytes) -> Waiter | None:
        """Return the waiter of a reply subject."""
        return self._requests.get(reply)

    def take_question(self, question: Question) -> Waiter | None:
        """Remove and return the next waiter for this answer; None if it gave up or is unknown."""
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
        """Remove and return the waiter of this PONG."""
        waiter = self._pings.pop(body, None)
        if waiter is not None:
            del self._places[waiter]
        return waiter

    def take_all(self) -> list[Waiter]:
        """Remove and return all waiters, because the connection is gone."""
        waiters = list(self._places)
        self._requests.clear()
        self._questions.clear()
        self._pings.clear()
        self._places.clear()
        self._abandoned = 0
        return waiters

    def check(self, more: int = 0) -> None:
        """Check that one more reply may be pending, in addition to `more`.

        Raises:
            Overloaded: The limit on pending replies is reached.
        """
        if len(self._places) + self._abandoned + more >= self._limit:
            raise Overloaded(f"the limit of {self._limit} pending replies is reached")

    def _admit(self, waiter: Waiter, place: bytes) -> None:
        self.check()
        self._places[waiter] = place
