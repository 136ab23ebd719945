"""Channel of an asyncio connection: publish, subscribe and request within it."""

import dataclasses
from collections.abc import Awaitable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from weft.client.asyncio.subscription import AsyncSubscription, AsyncSubscriptionContext, Handler
from weft.client.channels.base import ChannelFace, wish_within
from weft.client.channels.memberships import ChannelMembership
from weft.client.channels.requests import ChannelRequests
from weft.client.options import GatherOptions, PublishOptions, RequestOptions, SubscribeOptions
from weft.client.publish.encode import Body
from weft.client.received import AsyncReceived

if TYPE_CHECKING:
    from weft.client.asyncio.connection import AsyncConnection


class AsyncChannel(ChannelFace):
    """A channel that a connection opened or joined; leave() ends the membership.

    After a disconnection the connection joins it again, and messages published meanwhile wait for
    that. If it cannot be joined again, or is closed or lost, `error` gives the reason, and its
    subscriptions raise it.
    """

    def __init__(
        self,
        connection: "AsyncConnection",
        home: AsyncSubscriptionContext,
        channels: ChannelRequests,
        membership: ChannelMembership,
    ) -> None:
        self._connection = connection
        self._home = dataclasses.replace(home, place=membership)
        self._channels = channels
        self._membership = membership

    def publish(
        self, subject: str, body: Body, **options: Unpack[PublishOptions]
    ) -> Awaitable[Any]:
        """Publish to all members of the channel; the options are those of the connection.

        Raises:
            NotOpen: The channel was left.
            WeftError: The reason why the channel ended, or an error of AsyncConnection.publish().
        """
        membership = self._membership
        if membership.is_joined:
            return self._connection.publish(membership.prefix + subject, body, **options)
        return self._publish_later(subject, body, options)

    def subscribe(
        self,
        patterns: str | Iterable[str] = ">",
        handler: Handler | None = None,
        **options: Unpack[SubscribeOptions],
    ) -> AsyncSubscription:
        """Subscribe to one or several patterns within the channel; default: all subjects.

        Like AsyncConnection.subscribe(), but without history.

        Raises:
            NotOpen: The channel was left.
            WeftError: The reason why the channel ended.
        """
        self._membership.check()
        return AsyncSubscription(self._home, patterns, wish_within(options), handler)

    async def send_request(
        self,
        subject: str,
        body: Body,
        timeout: float | None = None,
        **options: Unpack[RequestOptions],
    ) -> AsyncReceived:
        """Send a request within the channel; see AsyncConnection.send_request()."""
        await self._ready()
        return await self._connection.send_request(self._full(subject), body, timeout, **options)

    async def gather(
        self, subject: str, body: Body, *, masked: bool = False, **ending: Unpack[GatherOptions]
    ) -> list[AsyncReceived]:
        """Gather the answers of all members on a subject; see AsyncConnection.gather()."""
        await self._ready()
        return await self._connection.gather(self._full(subject), body, masked=masked, **ending)

    async def leave(self) -> None:
        """End the membership and its subscriptions. Idempotent."""
        await self._channels.leave(self._membership)

    async def close(self) -> None:
        """End the channel for all members; allowed to its opener, services and admins.

        Raises:
            NotAllowed: This connection may not close it.
            NotOpen: The channel was left.
        """
        await self._channels.close(self._membership)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.leave()

    def _full(self, subject: str) -> str:
        return self._membership.prefix + subject

    async def _ready(self) -> None:
        if not self._membership.is_joined:
            await self._channels.until_joined(self._membership)

    async def _publish_later(self, subject: str, body: Body, options: PublishOptions) -> Any:
        await self._ready()
        return await self._connection.publish(self._full(subject), body, **options)
