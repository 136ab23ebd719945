"""A channel of the asyncio face: what is said and heard in it."""

import dataclasses
from collections.abc import Awaitable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from weft.client.asyncio.subscription import AsyncSubscription, Handler, Home
from weft.client.channels.base import ChannelFace, wish_within
from weft.client.channels.memberships import Membership
from weft.client.channels.requests import Channels
from weft.client.options import GatherOptions, PublishOptions, RequestOptions, SubscribeOptions
from weft.client.publish.encode import Body
from weft.client.received import AsyncReceived

if TYPE_CHECKING:
    from weft.client.asyncio.connection import AsyncConnection


class AsyncChannel(ChannelFace):
    """A channel that a connection opened or joined; leave it to be in it no more.

    After a loss the connection joins it again by itself, and what is said meanwhile waits for that.
    If it cannot be joined again, or is closed or lost, `error` says why, and so do its
    subscriptions.
    """

    def __init__(
        self,
        connection: "AsyncConnection",
        home: Home,
        channels: Channels,
        membership: Membership,
    ) -> None:
        self._connection = connection
        self._home = dataclasses.replace(home, place=membership)
        self._channels = channels
        self._membership = membership

    def publish(
        self, subject: str, body: Body, **options: Unpack[PublishOptions]
    ) -> Awaitable[Any]:
        """Say something to everybody in the channel; the options are those of a connection.

        Raises:
            NotOpen: the channel was left.
            WeftError: why the channel ended, or what AsyncConnection.publish() raises.
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
        """Hear what is said in the channel to a pattern, or to several, or to any.

        It is like AsyncConnection.subscribe(), but has no history.

        Raises:
            NotOpen: the channel was left.
            WeftError: why the channel ended.
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
        """Ask whoever in the channel serves a subject; see AsyncConnection.send_request()."""
        await self._ready()
        return await self._connection.send_request(self._full(subject), body, timeout, **options)

    async def gather(
        self, subject: str, body: Body, *, masked: bool = False, **ending: Unpack[GatherOptions]
    ) -> list[AsyncReceived]:
        """Ask everybody in the channel who hears a subject; see AsyncConnection.gather()."""
        await self._ready()
        return await self._connection.gather(self._full(subject), body, masked=masked, **ending)

    async def leave(self) -> None:
        """Be in it no more; its subscriptions end. Harmless if done before."""
        await self._channels.leave(self._membership)

    async def close(self) -> None:
        """End it for everybody, which takes whoever opened it, a service or an admin.

        Raises:
            NotAllowed: this connection may not.
            NotOpen: it was left before.
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
