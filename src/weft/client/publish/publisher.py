"""publish() of both APIs: writes into the send buffer without waiting for the event loop."""

from collections.abc import Callable, Iterator
from typing import Any

from weft.client.lanes.require_direct import Required
from weft.client.publish.encode import Body, message_frame, opening
from weft.client.publish.send_buffer import SendBuffer
from weft.client.requests.calls import Calls, Draft, Identity
from weft.client.requests.open_requests import OpenRequests
from weft.errors import BadOption
from weft.wire.frames import HEADER_BYTES, Flag

_NOT_BACK = int(Flag.NOT_BACK)
_MASKED = int(Flag.MASKED)
_REQUEST = int(Flag.REQUEST)
_FAILED = int(Flag.FAILED)

# An exhausted iterator: awaiting it returns at once.
_END: Iterator[None] = iter(())


class Done:
    """Completed awaitable: await it, wrap it in a task, or ignore it."""

    def __await__(self) -> Iterator[None]:
        return _END

    def send(self, value: object) -> None:  # noqa: ARG002  # coroutine interface
        """Finish, as a coroutine does."""
        raise StopIteration

    def throw(self, error: Any, *_: object) -> None:
        """Raise the error, as a coroutine does."""
        raise error

    def close(self) -> None:
        """Do nothing: it is already finished."""


_DONE = Done()


class Publishing:
    """Base class of the publishing methods of both APIs."""

    _outgoing: SendBuffer
    _requests: OpenRequests
    # Set with direct="require", where no message may go through the gateway.
    _required: Required | None

    def _put_answer(self, asked: bytes, body: Body, is_failure: bool) -> bytes | None:
        """Put the answer to a received frame into the buffer; return it if there is no space."""
        reply_start = HEADER_BYTES + asked[6]
        reply = asked[reply_start : reply_start + asked[7]]
        if asked[5] & _REQUEST:
            self._requests.settle(reply)
        return self._put(reply.decode(), body, "", _FAILED if is_failure else 0)

    def _put(self, subject: str, body: Body, reply: str, flags: int) -> bytes | None:
        """Put a message into the buffer or drop it; return its frame if it must wait for space."""
        if self._required is not None:
            self._required.check(subject, flags, reply)
        if (
            type(body) is bytes
            and not reply
            and self._outgoing.put_bare(opening(subject), flags, body)
        ):
            return None
        frame = message_frame(subject, body, reply, flags)
        return None if self._outgoing.offer(frame) else frame


class AsyncPublishing(Publishing):
    """Publishing methods of the asyncio connection."""

    def __init__(self, outgoing: SendBuffer, calls: Calls, required: Required | None) -> None:
        self._outgoing = outgoing
        self._required = required
        self._calls = calls
        self._requests = calls.requests

    def answer(self, asked: bytes, body: Body, *, is_failure: bool = False) -> Any:
        """Publish the answer to the message in frame `asked`; see Received.respond()."""
        frame = self._put_answer(asked, body, is_failure)
        return _DONE if frame is None else self._calls.wait_for_room(frame)

    def publish(  # noqa: PLR0913  # each is an option of its own
        self,
        subject: str,
        body: Body,
        *,
        reply: str = "",
        not_back: bool = False,
        masked: bool = False,
        acknowledge: bool = False,
    ) -> Any:
        """Publish a message; `not_back` keeps it from this connection's own subscriptions.

        With `masked` receivers see an alias of the reply subject, and not who sent the message.
        The message is buffered by the call; sending starts when other tasks run. Await the result:
        it waits for space in the buffer, or, with `acknowledge`, until the gateway has accepted the
        message, and returns its identity.

        Raises:
            BadSubject: Invalid subject or reply, or one with wildcards.
            BadField: The body cannot be published, or is too large.
            BadOption: `masked` without a reply.
            Overloaded: The buffer is full; see the option `when_full`.
            NotOpen: The connection is closed.
            WeftError: With `acknowledge`: the gateway refused the message.
        """
        flags = _flags(not_back, masked, reply)
        if acknowledge:
            return self._calls.acknowledged(Draft(subject, body, reply, flags))
        frame = self._put(subject, body, reply, flags)
        return _DONE if frame is None else self._calls.wait_for_room(frame)


class BlockingPublishing(Publishing):
    """Publishing methods of the blocking connection; `acknowledged` sends and waits."""

    def __init__(
        self,
        outgoing: SendBuffer,
        calls: Calls,
        acknowledged: Callable[[Draft], Identity],
        required: Required | None,
        timeout_s: float,
    ) -> None:
        self._outgoing = outgoing
        self._required = required
        self._acknowledged = acknowledged
        self._timeout_s = timeout_s
        self._requests = calls.requests

    def answer(self, asked: bytes, body: Body, *, is_failure: bool = False) -> None:
        """Publish the answer to the message in frame `asked`; see Received.respond()."""
        frame = self._put_answer(asked, body, is_failure)
        if frame is not None:
            self._outgoing.put_waiting(frame, self._timeout_s)

    def publish(  # noqa: PLR0913  # each is an option of its own
        self,
        subject: str,
        body: Body,
        *,
        reply: str = "",
        not_back: bool = False,
        masked: bool = False,
        acknowledge: bool = False,
    ) -> Any:
        """Publish a message; `not_back` keeps it from this connection's own subscriptions.

        With `masked` receivers see an alias of the reply subject, and not who sent the message.
        Returns once the message is buffered, or, with `acknowledge`, once the gateway has accepted
        it: then with the identity of the message.

        Raises:
            BadSubject: Invalid subject or reply, or one with wildcards.
            BadField: The body cannot be published, or is too large.
            BadOption: `masked` without a reply.
            Overloaded: The buffer is full; see the option `when_full`.
            NotOpen: The connection is closed.
            WeftError: With `acknowledge`: the gateway refused the message.
        """
        flags = _flags(not_back, masked, reply)
        if acknowledge:
            return self._acknowledged(Draft(subject, body, reply, flags))
        # Not scheduled on the loop, which is woken only if it sleeps.
        frame = self._put(subject, body, reply, flags)
        if frame is not None:
            self._outgoing.put_waiting(frame, self._timeout_s)
        return None


def _flags(not_back: bool, masked: bool, reply: str) -> int:
    """Return the delivery flags of a frame."""
    flags = _NOT_BACK if not_back else 0
    if masked:
        if not reply:
            raise BadOption("masked needs a reply subject to hide")
        flags |= _MASKED
    return flags
