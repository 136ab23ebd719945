"""Calls that await an answer: requests, gather, acknowledgements, round trips.

A call without a connection waits for one within its timeout. A lost connection fails every call
that was sent over it, because it is unknown whether it arrived; a request with `resend` is sent
again.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from weft.client.connection.engine import Engine
from weft.client.options import GatherLimits
from weft.client.publish.encode import Body, message_frame
from weft.client.publish.pending_ack import Pending
from weft.client.publish.send_space import Queued
from weft.client.requests.pending_replies import Waiter
from weft.client.requests.runtime_grants import DISABLE, ENABLE, enabled_body
from weft.client.requests.waiters import Several, Single
from weft.client.subscriptions.registry import SubscriptionState
from weft.errors import ConnectionLost, NotDirect, NotOpen, TimedOut
from weft.wire import frames
from weft.wire.frames import Flag
from weft.wire.message.message import Message
from weft.wire.subjects import checked_subject

ASK_DIRECT = "_WEFT.ask.lane.direct"

_REPLY_MAX_BYTES = 64
_OF_GATEWAY = "_WEFT."


class Identity(NamedTuple):
    """Identity that the gateway assigned to an accepted message."""

    origin: int
    publisher: int
    sequence: int
    time: int


class Draft(NamedTuple):
    """A message to be sent, with its flags."""

    subject: str
    body: Body
    reply: str = ""
    flags: int = 0


class Calls:
    """Calls that await an answer, for both APIs; runs on the loop's thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._session = engine.session
        self._timeout_s = engine.options.timeout_s
        # Requests that this connection received.
        self.requests = engine.subscriptions.dispatch.requests

    def wait_for_room(self, frame: bytes) -> Coroutine[Any, Any, None]:
        """Buffer a frame once there is space, ahead of messages published later.

        Its place in the order is taken by the call; the result waits until it is buffered.

        Raises:
            Overloaded: No space within the timeout.
        """
        queued = self._engine.room.queue(frame)
        waiting = self._until_put(queued)
        queued.watch(waiting, self._engine.room)
        return waiting

    def acknowledged(self, draft: Draft) -> Coroutine[Any, Any, Identity]:
        """Publish a message; the result waits until the gateway has accepted it.

        The call buffers the message, or queues it for space, before it returns.
        """
        pending = self.pending(draft)
        if self._engine.outgoing.offer_pending(pending):
            return self.until_acknowledged(pending, draft.subject)
        queued = self._engine.room.queue(pending.frame, pending)
        waiting = self._acknowledged_later(pending, draft.subject, queued)
        queued.watch(waiting, self._engine.room)
        return waiting

    def pending(self, draft: Draft) -> Pending:
        """Return an acknowledged message, ready to be buffered; callable on any thread.

        Raises:
            Overloaded: Too many replies are pending.
        """
        frame = message_frame(draft.subject, draft.body, draft.reply, draft.flags | Flag.ANSWER)
        self._check(draft, Flag.ANSWER)
        outgoing = self._engine.outgoing
        self._session.check_waiting(outgoing.pending + outgoing.queued)
        return Pending(frame, Single(self._engine.loop))

    async def until_acknowledged(
        self, pending: Pending, subject: str, timeout: float | None = None
    ) -> Identity:
        """Wait until the gateway has accepted a buffered message."""
        about = f"no acknowledgement of {subject!r}"
        async with self.limited(timeout, about, self._timeout_s):
            return await self._acknowledgement(pending)

    async def _acknowledged_later(self, pending: Pending, subject: str, queued: Queued) -> Identity:
        async with self.limited(None, f"no acknowledgement of {subject!r}"):
            try:
                await queued.put
            finally:
                self._engine.room.leave(queued)
            return await self._acknowledgement(pending)

    async def _acknowledgement(self, pending: Pending) -> Identity:
        try:
            answer = frames.parse(await pending.waiter.answer)
        finally:
            pending.is_given_up = True
            self._forget(pending.waiter)
        return Identity(answer.origin, answer.publisher, answer.sequence, answer.time_ns)

    async def _until_put(self, queued: Queued) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await queued.put
        except TimeoutError as error:
            raise self._engine.outgoing.is_full(self._timeout_s) from error
        finally:
            self._engine.room.leave(queued)

    async def request(self, draft: Draft, timeout: float | None, *, resend: bool) -> bytes:
        """Send a request to one responder; return the frame of its answer."""
        limit_s = self._timeout_s if timeout is None else timeout
        self._check(draft, Flag.REQUEST)
        about = f"no answer from {draft.subject!r}"
        began = self._engine.loop.time()
        waiter = Single()
        try:
            # In most cases there is a connection and space, so that only the answer is awaited.
            if self._ask_at_once(waiter, draft):
                timer = self._engine.loop.call_later(limit_s, waiter.expired, about, limit_s)
                try:
                    return await waiter.answer
                finally:
                    timer.cancel()
        except ConnectionLost:
            if not (resend and waiter.is_lost):
                raise
        finally:
            self._forget(waiter)
        left_s = max(began + limit_s - self._engine.loop.time(), 0.0)
        async with self.limited(left_s, about, limit_s):
            return await self._request_patiently(draft, resend=resend)

    async def _request_patiently(self, draft: Draft, *, resend: bool) -> bytes:
        while True:
            waiter = Single()
            try:
                await self._ask(waiter, draft, draft.flags | Flag.REQUEST)
                return await waiter.answer
            except ConnectionLost:
                if not (resend and waiter.is_lost):
                    raise
            finally:
                self._forget(waiter)

    async def enable(self, right: str, pattern: str) -> None:
        """Grant clients a right, over this connection and every later one."""
        draft = Draft(ENABLE, enabled_body(right, pattern))
        await self.request(draft, None, resend=True)
        self._engine.enabling.add(right, pattern)

    async def disable(self, right: str, pattern: str) -> None:
        """Revoke a right that was enabled."""
        draft = Draft(DISABLE, enabled_body(right, pattern))
        self._engine.enabling.remove(right, pattern)
        await self.request(draft, None, resend=True)

    async def direct(self, subject: str, timeout: float | None) -> None:
        """Request lanes to all receivers of a subject, and wait for them."""
        name = checked_subject(subject)
        if self._engine.options.direct == "never":
            raise NotDirect("this connection has direct='never'")
        async with self.limited(timeout, f"no lanes for {subject!r}"):
            lanes = self._engine.lanes
            if name in lanes.splitter.routes:
                return
            draft = Draft(ASK_DIRECT, Message(subject=subject))
            answer = Message.from_frame(await self.request(draft, timeout, resend=True))
            if answer.get_string("state") == "relayed":
                raise NotDirect(f"{subject!r} is relayed: {answer.get_string('reason')}")
            await lanes.until_direct(name)

    async def gather(self, draft: Draft, ending: GatherLimits) -> list[bytes]:
        """Send a request to all subscribers; return the frames of their answers."""
        self._check(draft, 0)
        limit_s = ending.deadline_s or self._timeout_s
        deadline = self._engine.loop.time() + limit_s
        answers = Several(self._engine.options.queue_bytes)
        try:
            async with self.limited(
                limit_s, f"no connection to send a request to {draft.subject!r}"
            ):
                await self._ask(answers, draft, draft.flags)
            await self._collect(answers, ending, deadline)
        finally:
            self._forget(answers)
        return answers.frames[: ending.count]

    async def flush(self, timeout: float | None) -> None:
        """Wait until the gateway has processed all messages published before."""
        waiter = Single()
        async with self.limited(timeout, "no answer to a ping"):
            try:
                await self._engine.until_open()
                self._engine.outgoing.put_control(self._session.ping(waiter))
                self._engine.reading.steer()
                await waiter.answer
            finally:
                self._forget(waiter)
            await self._engine.lanes.ends.settled()

    async def drain(self, timeout: float | None) -> None:
        """Unsubscribe everything, and wait until all messages were processed and sent."""
        engine = self._engine
        async with self.limited(timeout, "not everything was delivered"):
            engine.subscriptions.withdraw()
            await self._flush_if_needed(timeout)
            engine.subscriptions.finish()
            await engine.reading.until_taken()
            # The last messages that handlers published.
            await self._flush_if_needed(timeout)

    async def _flush_if_needed(self, timeout: float | None) -> None:
        """Wait for the gateway, unless it is disconnected and nothing is buffered."""
        engine = self._engine
        is_away = not (engine.opened.is_set() or engine.is_closed)
        if is_away and not (engine.outgoing.waiting_bytes or engine.outgoing.queued):
            return
        await self.flush(timeout)

    async def ready(self, listening: SubscriptionState, timeout: float | None) -> None:
        """Wait until the gateway has confirmed a subscription; raise if it was refused."""
        about = f"no confirmation of {listening.names[0]!r}"
        async with self.limited(timeout, about):
            await listening.settled.wait()
        if listening.error is not None:
            raise listening.error
        if not listening.is_open:
            raise NotOpen("the subscription is closed")

    async def _collect(self, answers: Several, ending: GatherLimits, deadline: float) -> None:
        until = deadline
        while ending.count is None or len(answers.frames) < ending.count:
            try:
                async with asyncio.timeout_at(until):
                    await answers.more()
            except TimeoutError as error:
                if isinstance(error, TimedOut):
                    raise
                return
            if ending.quiet_s is not None:
                until = min(deadline, self._engine.loop.time() + ending.quiet_s)

    def _check(self, draft: Draft, flags: int) -> None:
        """Check that the message may be sent with direct="require"."""
        if self._engine.required is not None:
            self._engine.required.check(draft.subject, draft.flags | flags, draft.reply)

    def _ask_at_once(self, waiter: Single, draft: Draft) -> bool:
        """Send a request if there is a connection and space; return whether it was sent."""
        if not self._engine.opened.is_set() or self._engine.is_closed:
            return False
        is_put = False
        reply = self._reply(waiter, draft)
        try:
            frame = message_frame(draft.subject, draft.body, reply, draft.flags | Flag.REQUEST)
            is_put = self._engine.put_and_flush(frame)
        finally:
            if not is_put:
                self._session.withdraw(waiter)
        self._engine.reading.steer()
        return is_put

    async def _ask(self, waiter: Waiter, draft: Draft, flags: int) -> None:
        def asked() -> bytes:
            reply = self._reply(waiter, draft)
            return message_frame(draft.subject, draft.body, reply, flags)

        # The reply subject is not known yet: an inbox belongs to a connection.
        longest = message_frame(draft.subject, draft.body, "_" * _REPLY_MAX_BYTES, flags)
        await self._send(waiter, asked, longest)

    def _reply(self, waiter: Waiter, draft: Draft) -> str:
        of_gateway = draft.subject.startswith(_OF_GATEWAY)
        return self._session.request(waiter, of_gateway=of_gateway).decode()

    async def _send(self, waiter: Waiter, asked: Callable[[], bytes], longest: bytes) -> None:
        """Buffer a frame once there is a connection and space.

        `asked` encodes it and registers the waiter; it is no longer than `longest`.
        """
        outgoing = self._engine.outgoing
        outgoing.check(longest)
        is_put = False
        while not is_put:
            await self._ready_for(len(longest))
            frame = asked()
            try:
                # Another thread may have taken the space meanwhile.
                is_put = outgoing.put(frame)
            finally:
                if not is_put:
                    self._session.withdraw(waiter)
        self._engine.reading.steer()

    async def _ready_for(self, size: int) -> None:
        """Wait for a connection and space; the caller must send without awaiting anything else."""
        while True:
            await self._engine.until_open()
            if self._engine.outgoing.has_room(size):
                return
            if self._engine.options.when_full != "block":
                raise self._engine.outgoing.is_full()
            await self._engine.room.wait()

    def _forget(self, waiter: Waiter) -> None:
        self._session.forget(waiter)
        self._engine.reading.steer()

    @asynccontextmanager
    async def limited(
        self, timeout: float | None, about: str, told_s: float | None = None
    ) -> AsyncIterator[None]:
        """Raise TimedOut if the block exceeds the timeout; the text gives `told_s` if set."""
        limit_s = self._timeout_s if timeout is None else timeout
        try:
            async with asyncio.timeout(limit_s):
                yield
        except TimeoutError as error:
            if isinstance(error, TimedOut):
                raise
            raise TimedOut(f"{about} after {limit_s if told_s is None else told_s} s") from error
