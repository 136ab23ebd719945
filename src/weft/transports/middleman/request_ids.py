"""Mapping between ReqIDs and reply subjects, for one peer.

Each of its requests gets an unguessable reply subject below its inbox. Each request that it
receives gets a substitute for the reply subject, valid only for this peer. Both end with the
answer, or when the request expires.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from weft.errors import NotYours, TooMany, UsageError, shortened


class PendingRequest(NamedTuple):
    """Request of this peer that awaits its answer; without a ReqID an error is not reported."""

    target: str
    request_id: str
    time_ns: int


class Given(NamedTuple):
    """Request that this peer has yet to answer."""

    reply: bytes
    time_ns: int


class RequestIds:
    """Pending requests of one peer, in both directions.

    Args:
        inbox: prefix of its reply subjects.
        token: returns unguessable names.
    """

    def __init__(self, inbox: bytes, token: Callable[[], str]) -> None:
        self._inbox = inbox
        self._token = token
        # Ordered by age, so that expiry finds the oldest without a scan.
        self._asked: OrderedDict[bytes, PendingRequest] = OrderedDict()
        self._given: OrderedDict[str, Given] = OrderedDict()
        self._waiting: set[str] = set()

    def __len__(self) -> int:
        return len(self._asked) + len(self._given)

    def ask(self, asked: PendingRequest, limit: int) -> bytes:
        """Return a reply subject for a request; at most `limit` may be pending.

        Raises:
            UsageError: a request with this ReqID is pending.
            TooMany: the limit is reached.
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

    def answered(self, reply: bytes) -> PendingRequest | None:
        """Remove and return the request that an answer is for; None if it is not pending."""
        asked = self._asked.pop(reply, None)
        if asked is not None:
            self._waiting.discard(asked.request_id)
        return asked

    def give(self, given: Given, limit: int) -> str:
        """Return a substitute for a reply subject; at the limit, the oldest request ends."""
        if len(self._given) >= limit:
            self._given.popitem(last=False)
        stand_in = self._token()
        self._given[stand_in] = given
        return stand_in

    def answer(self, stand_in: str) -> bytes:
        """Remove a substitute and return its reply subject.

        Raises:
            NotYours: this peer received no such request, or has answered it.
        """
        given = self._given.pop(stand_in, None)
        if given is None:
            raise NotYours(f"no request {shortened(stand_in)} awaits an answer from this client")
        return given.reply

    def expire(self, oldest_ns: int) -> list[PendingRequest]:
        """Remove requests older than a time; return those of this peer, which get no answer."""
        while self._given and next(iter(self._given.values())).time_ns < oldest_ns:
            self._given.popitem(last=False)
        expired: list[PendingRequest] = []
        while self._asked and next(iter(self._asked.values())).time_ns < oldest_ns:
            _, asked = self._asked.popitem(last=False)
            self._waiting.discard(asked.request_id)
            expired.append(asked)
        return expired
