"""Which ReqID stands for which reply subject, for one peer that knows requests by ReqIDs.

What it asks gets a reply subject below its own inbox that nobody can guess. What it
is asked gets a stand-in for the reply subject, which nobody else could use: it is looked up among
those that this peer was given. Both end with the answer, or with the life of a request.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from weft.errors import NotYours, TooMany, UsageError, shortened


class Asked(NamedTuple):
    """A request that waits for its answer; without a ReqID nobody is told of one."""

    target: str
    request_id: str
    time_ns: int


class Given(NamedTuple):
    """A request that this peer has yet to answer."""

    reply: bytes
    time_ns: int


class RequestIds:
    """The requests of one peer, both ways.

    Args:
        inbox: what its reply subjects begin with.
        token: makes names that nobody can guess.
    """

    def __init__(self, inbox: bytes, token: Callable[[], str]) -> None:
        self._inbox = inbox
        self._token = token
        # The oldest first, and it is found at once however many have ended before it.
        self._asked: OrderedDict[bytes, Asked] = OrderedDict()
        self._given: OrderedDict[str, Given] = OrderedDict()
        self._waiting: set[str] = set()

    def __len__(self) -> int:
        return len(self._asked) + len(self._given)

    def ask(self, asked: Asked, limit: int) -> bytes:
        """The reply subject for a request; there may be so many at once.

        Raises:
            UsageError: another request with this ReqID waits for its answer.
            TooMany: there would be more.
        """
        if asked.request_id in self._waiting:
            raise UsageError(
                f"another request with ReqID {shortened(asked.request_id)} waits for its answer"
            )
        if len(self._asked) >= limit:
            raise TooMany(f"{limit} requests wait for their answers, which is the limit")
        reply = self._inbox + self._token().encode()
        self._asked[reply] = asked
        if asked.request_id:
            self._waiting.add(asked.request_id)
        return reply

    def answered(self, reply: bytes) -> Asked | None:
        """The request that an answer is for; None if none waits for it, or not any more."""
        asked = self._asked.pop(reply, None)
        if asked is not None:
            self._waiting.discard(asked.request_id)
        return asked

    def give(self, given: Given, limit: int) -> str:
        """A stand-in for the reply subject of a request; of more than so many the oldest ends."""
        if len(self._given) >= limit:
            self._given.popitem(last=False)
        stand_in = self._token()
        self._given[stand_in] = given
        return stand_in

    def answer(self, stand_in: str) -> bytes:
        """The reply subject that a stand-in is for, once.

        Raises:
            NotYours: this peer was given no such request, or has answered it.
        """
        given = self._given.pop(stand_in, None)
        if given is None:
            raise NotYours(f"no request {shortened(stand_in)} waits for an answer from here")
        return given.reply

    def expire(self, oldest_ns: int) -> list[Asked]:
        """End what is older than a time; the requests whose answers will not come."""
        while self._given and next(iter(self._given.values())).time_ns < oldest_ns:
            self._given.popitem(last=False)
        expired: list[Asked] = []
        while self._asked and next(iter(self._asked.values())).time_ns < oldest_ns:
            _, asked = self._asked.popitem(last=False)
            self._waiting.discard(asked.request_id)
            expired.append(asked)
        return expired
