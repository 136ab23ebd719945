"""Channel operations: requests to the gateway, and rejoining after a reconnection.

Keys are derived from a password on another thread, because that is slow by design; the password
itself is not stored. After a reconnection the opener opens the channel again if it is gone.
"""

import asyncio
import contextlib
import hmac
import os
import random
from collections.abc import Callable

from weft.client.channels.channel_info import ChannelFacts, ChannelList, facts_in
from weft.client.channels.memberships import Again, ChannelMembership
from weft.client.connection.backoff import Backoff
from weft.client.connection.engine import Engine
from weft.client.requests.calls import Calls, Draft
from weft.errors import (
    BadMessage,
    BadOption,
    ChannelExists,
    ConnectionLost,
    InternalError,
    NotAMember,
    Overloaded,
    ProtocolError,
    UsageError,
    WeftError,
    WrongPassword,
)
from weft.wire.message.message import Message
from weft.wire.password_proof import ProofInput, Secret, prove, secret_of, sign
from weft.wire.subjects import checked_subject

ASK = "_WEFT.ask.channel."

# The gateway asks all others and waits up to 2 s for their answers.
OPEN_MIN_S = 5.0
# Limit on attempts to rejoin: a fifth wrong password would trigger the gateway's throttle.
TRIES = 4
AGAIN_FIRST_S = 0.5
AGAIN_CAP_S = 4.0

_NONCE_BYTES = 32

_NOT_YET = (WrongPassword, ChannelExists)


class ChannelRequests:
    """Channel operations for both APIs; runs on the loop's thread."""

    def __init__(
        self, engine: Engine, calls: Calls, chance: Callable[[], float] = random.random
    ) -> None:
        self._engine = engine
        self._calls = calls
        self._chance = chance
        self._service = engine.options.service
        # A gateway stores only the last few challenges of a connection: answer one at a time.
        self._turn = asyncio.Lock()
        # Joins that were cancelled before the gateway answered, by channel name.
        self._given_up: dict[str, asyncio.Task[None]] = {}
        engine.memberships.again = self._join_again

    async def open(self, name: str, password: str | None) -> ChannelMembership:
        """Open a channel and join it."""
        return await self._begin(name, password, self._open)

    async def join(self, name: str, password: str | None) -> ChannelMembership:
        """Join an existing channel."""
        return await self._begin(name, password, self._enter)

    async def leave(self, membership: ChannelMembership) -> None:
        """End a membership. Idempotent."""
        if membership.is_over or membership.is_leaving:
            return
        was_joined = membership.is_joined
        membership.is_leaving = True
        self._end(membership, None)
        if was_joined:
            await self._take_leave(membership)

    async def close(self, membership: ChannelMembership) -> None:
        """End a channel for all members."""
        await self.until_joined(membership)
        membership.is_leaving = True
        try:
            await self._ask("close", Message(id=membership.id))
        finally:
            membership.is_leaving = False
        if not membership.is_over:
            membership.is_joined = False
            self._end(membership, None)

    async def close_named(self, name: str) -> None:
        """End a channel by name for all members, without a membership."""
        await self._ask("close", Message(name=_checked(name)))

    async def list(self, limit: int) -> ChannelList:
        """Return the visible channels, at most `limit`."""
        if limit < 1:
            raise BadOption(f"limit is {limit}, and must be more than 0")
        answer = await self._ask("list", Message(limit=limit))
        try:
            return ChannelList(answer)
        except UsageError as error:
            raise BadMessage(f"invalid list of channels: {error}") from error

    async def show(self, name: str) -> ChannelFacts:
        """Return the details of one channel."""
        answer = await self._ask("show", Message(name=_checked(name)))
        try:
            return facts_in(answer)
        except UsageError as error:
            raise BadMessage(f"invalid description of a channel: {error}") from error

    async def until_joined(self, membership: ChannelMembership) -> None:
        """Wait until a channel can be published to; see Membership.until_joined()."""
        about = f"the channel {membership.name!r} was not joined again"
        async with self._calls.limited(None, about):
            await membership.until_joined()

    async def _begin(self, name: str, password: str | None, enter: Again) -> ChannelMembership:
        checked = _checked(name)
        if password == "":
            raise BadOption("the password is empty: leave it out for a channel without one")
        if checked in self._given_up:
            await asyncio.wait({self._given_up[checked]})
        membership = self._engine.memberships.reserve(checked)
        entering = asyncio.ensure_future(self._enter_by(enter, membership, password))
        try:
            await asyncio.shield(entering)
        except asyncio.CancelledError:
            self._given_up[checked] = asyncio.ensure_future(self._give_up(entering, membership))
            raise
        except BaseException:
            self._engine.memberships.forget(membership)
            raise
        return membership

    async def _enter_by(
        self, enter: Again, membership: ChannelMembership, password: str | None
    ) -> None:
        name = membership.name
        if password is not None:
            keys = (self._service, name.encode(), password)
            membership.secret = await asyncio.to_thread(secret_of, *keys)
        async with self._calls.limited(None, f"no connection to join {name!r}"):
            await self._engine.until_open()
        line = self._engine.line
        await enter(membership)
        if self._engine.line is not line:
            # The answer arrived, but the connection was lost before this task ran.
            raise ConnectionLost(f"the connection was lost while {name!r} was joined")
        membership.joined()

    async def _give_up(self, entering: asyncio.Future[None], membership: ChannelMembership) -> None:
        """Leave a channel whose join was cancelled, once the gateway has answered."""
        try:
            await entering
            membership.end(None)
            await self._take_leave(membership)
        except WeftError:
            # Not joined, so there is nothing to leave.
            return
        finally:
            self._engine.memberships.forget(membership)
            del self._given_up[membership.name]

    async def _open(self, membership: ChannelMembership) -> None:
        told: dict[str, object] = {"name": membership.name}
        if membership.secret is not None:
            verifier = membership.secret.verifier
            told |= {"stored": verifier.stored, "server": verifier.server}
        answer = await self._ask("open", Message.from_dict(told))
        membership.has_opened = True
        membership.silent = tuple(answer.get("silent", ()))
        membership.entered(_id_in(answer))

    async def _enter(self, membership: ChannelMembership) -> None:
        async with self._turn:
            await self._enter_in_turn(membership)

    async def _enter_in_turn(self, membership: ChannelMembership) -> None:
        name, secret = membership.name, membership.secret
        answer = await self._ask("join", Message(name=name))
        if "challenge" in answer:
            if secret is None:
                raise WrongPassword(f"there is no channel {name!r} without a password")
            membership.entered(await self._prove(name, secret, answer))
            return
        channel_id = _id_in(answer)
        if secret is not None:
            # It is open, so its members need not know the password.
            await self._ask("leave", Message(id=channel_id))
            raise WrongPassword(f"the channel {name!r} has no password: join it without one")
        membership.entered(channel_id)

    async def _prove(self, name: str, secret: Secret, answer: Message) -> str:
        """Prove knowledge of the password, verify the gateway's proof, return the channel id."""
        challenge = _blob_in(answer, "challenge")
        claim = ProofInput(self._service, name.encode(), challenge, os.urandom(_NONCE_BYTES))
        told = Message(
            name=name, challenge=challenge, nonce=claim.nonce, proof=prove(secret, claim)
        )
        proven = await self._ask("prove", told)
        channel_id = _id_in(proven)
        signature = _blob_in(proven, "signature")
        if not hmac.compare_digest(signature, sign(secret.server, claim)):
            await self._ask("leave", Message(id=channel_id))
            raise ProtocolError(
                f"gateway {self._engine.session.gateway} let us into the channel {name!r}"
                " without knowing its password"
            )
        return channel_id

    async def _join_again(self, membership: ChannelMembership) -> None:
        """Rejoin a channel over a new connection, or end the membership if that fails."""
        try:
            await self._retry(membership)
        except WeftError as error:
            self._end(membership, error)
            return
        except Exception as error:
            # Only an internal error gets here: end the membership instead of leaving it silent.
            self._end(membership, InternalError(f"the client failed: {error!r}"))
            raise
        if membership.is_over:
            # It was left while the gateway was processing the join.
            await self._take_leave(membership)
            return
        try:
            self._engine.memberships.resume(membership)
        except Overloaded as error:
            self._engine.fail(error)

    async def _take_leave(self, membership: ChannelMembership) -> None:
        # A lost connection has left the channel, too.
        with contextlib.suppress(ConnectionLost, NotAMember):
            await self._ask("leave", Message(id=membership.id))

    def _end(self, membership: ChannelMembership, error: WeftError | None) -> None:
        try:
            self._engine.memberships.end(membership, error)
        except Overloaded as full:
            # The new connection joins and subscribes only the registered channels.
            self._engine.fail(full)

    async def _retry(self, membership: ChannelMembership) -> None:
        backoff = Backoff(AGAIN_FIRST_S, AGAIN_CAP_S)
        if not membership.has_opened:
            # The opener goes first: without a channel an attempt counts as a wrong password.
            await asyncio.sleep(backoff.next_delay_s(self._chance()))
        for tries_left in reversed(range(TRIES)):
            try:
                await self._come_back(membership)
            except (ConnectionLost, *_NOT_YET):
                if not tries_left:
                    raise
            else:
                return
            # At least half of the delay, so that the gateway can learn of the channel.
            await asyncio.sleep(backoff.next_delay_s(0.5 + self._chance() / 2))

    async def _come_back(self, membership: ChannelMembership) -> None:
        try:
            await self._enter(membership)
        except WrongPassword:
            if not membership.has_opened:
                raise
            await self._open(membership)

    async def _ask(self, verb: str, told: Message) -> Message:
        limit_s = max(self._engine.options.timeout_s, OPEN_MIN_S) if verb == "open" else None
        frame = await self._calls.request(Draft(ASK + verb, told), limit_s, resend=False)
        return Message.from_frame(frame)


def _checked(name: str) -> str:
    """Return a channel name that is a valid subject."""
    return checked_subject(name).decode()


def _id_in(answer: Message) -> str:
    try:
        return answer.get_string("id")
    except UsageError as error:
        raise BadMessage(f"answer without a channel id: {error}") from error


def _blob_in(answer: Message, field: str) -> bytes:
    try:
        return answer.get_blob(field)
    except UsageError as error:
        raise BadMessage(f"invalid answer about a channel: {error}") from error
