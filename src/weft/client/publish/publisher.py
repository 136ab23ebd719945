"""Publishing, for both faces: into the buffer while there is room, without a turn of the loop."""

from collections.abc import Callable, Iterator
from typing import Any

from weft.client.lanes.require_direct import Required
from weft.client.publish.encode import Body, message_frame, opening
from weft.client.publish.send_buffer import Outgoing
from weft.client.requests.calls import Calls, Draft, Identity
from weft.client.requests.open_requests import OpenRequests
from weft.errors import BadOption
from weft.wire.frames import HEADER_BYTES, Flag

_NOT_BACK = int(Flag.NOT_BACK)
_MASKED = int(Flag.MASKED)
_REQUEST = int(Flag.REQUEST)
_FAILED = int(Flag.FAILED)

# An iterator that is at its end: whoever awaits it goes on at once.
_END: Iterator[None] = iter(())


class Done:
    """What there is nothing to wait for: await it, make it a task, or leave it."""

    def __await__(self) -> Iterator[None]:
        return _END

    def send(self, value: object) -> None:  # noqa: ARG002  # there is nobody to take it
        """Come to the end, as a coroutine does."""
        raise StopIteration

    def throw(self, error: Any, *_: object) -> None:
        """End with an error, as a coroutine does."""
        raise error

    def close(self) -> None:
        """End, as a coroutine does."""


_DONE = Done()


class Publishing:
    """What both faces do to publish."""

    _outgoing: Outgoing
    _requests: OpenRequests
    # Set where nothing may go through the gateway.
    _required: Required | None

    def _put_answer(self, asked: bytes, body: Body, is_failure: bool) -> bytes | None:
        """Put the answer to a message that came in a frame; the frame if it must wait for room."""
        reply_start = HEADER_BYTES + asked[6]
        reply = asked[reply_start : reply_start + asked[7]]
        if asked[5] & _REQUEST:
            self._requests.settle(reply)
        return self._put(reply.decode(), body, "", _FAILED if is_failure else 0)

    def _put(self, subject: str, body: Body, reply: str, flags: int) -> bytes | None:
        """Put a message into the buffer, or drop it if so chosen; the frame if it must wait."""
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
    """The asyncio connection's way to publish."""

    def __init__(self, outgoing: Outgoing, calls: Calls, required: Required | None) -> None:
        self._outgoing = outgoing
        self._required = required
        self._calls = calls
        self._requests = calls.requests

    def answer(self, asked: bytes, body: Body, *, is_failure: bool = False) -> Any:
        """Publish the answer to a message that came in a frame; see Received.respond()."""
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

        With `masked` whoever gets it sees a stand-in for the reply, and not who sent it.
        It is buffered when this is called, and nothing is sent until other tasks run. What is
        returned is to be awaited: it waits while there is no room in the buffer, or, with
        `acknowledge`, until the gateway has taken the message, and gives its identity.

        Raises:
            BadSubject: the subject or the reply is not one that can be published to.
            BadField: the body cannot be published, or is too large.
            BadOption: `masked` without a reply.
            Overloaded: the buffer is full; see the option `when_full`.
            NotOpen: the connection is closed.
            WeftError: with `acknowledge`, what the gateway said instead.
        """
        flags = _flags(not_back, masked, reply)
        if acknowledge:
            return self._calls.acknowledged(Draft(subject, body, reply, flags))
        frame = self._put(subject, body, reply, flags)
        return _DONE if frame is None else self._calls.wait_for_room(frame)


class BlockingPublishing(Publishing):
    """The blocking connection's way to publish; `acknowledged` sends a draft and waits for it."""

    def __init__(
        self,
        outgoing: Outgoing,
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
        """Publish the answer to a message that came in a frame; see Received.respond()."""
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

        With `masked` whoever gets it sees a stand-in for the reply, and not who sent it.
        It returns once the message is buffered, or, with `acknowledge`, once the gateway has taken
        it: then with the identity that it was given.

        Raises:
            BadSubject: the subject or the reply is not one that can be published to.
            BadField: the body cannot be published, or is too large.
            BadOption: `masked` without a reply.
            Overloaded: the buffer is full; see the option `when_full`.
            NotOpen: the connection is closed.
            WeftError: with `acknowledge`, what the gateway said instead.
        """
        flags = _flags(not_back, masked, reply)
        if acknowledge:
            return self._acknowledged(Draft(subject, body, reply, flags))
        # Not by way of the loop: it is woken only if it sleeps.
        frame = self._put(subject, body, reply, flags)
        if frame is not None:
            self._outgoing.put_waiting(frame, self._timeout_s)
        return None


def _flags(not_back: bool, masked: bool, reply: str) -> int:
    """What a frame says of how it is to be passed on."""
    flags = _NOT_BACK if not_back else 0
    if masked:
        if not reply:
            raise BadOption("masked is for a message with a reply: without one it hides nothing")
        flags |= _MASKED
    return flags
