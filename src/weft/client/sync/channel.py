"""Channel of a blocking connection: publish, subscribe and request within it."""

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from weft.client.channels.base import ChannelFace, wish_within
from weft.client.channels.memberships import ChannelMembership
from weft.client.channels.requests import ChannelRequests
from weft.client.options import (
    GatherOptions,
    PublishOptions,
    RequestOptions,
    SubscribeOptions,
)
from weft.client.publish.encode import Body
from weft.client.received import BlockingReceived
from weft.client.sync.dispatch_batch import Handler, check_plain
from weft.client.sync.subscription import Subscription, SyncSubscriptionContext, subscribed
from weft.errors import NotOpen

if TYPE_CHECKING:
    from weft.client.sync.connection import Connection


class Channel(ChannelFace):
    """A channel that a connection opened or joined; leave() ends the membership.

    After a disconnection the connection joins it again, and messages published meanwhile wait for
    that. If it cannot be joined again, or is closed or lost, `error` gives the reason, and its
    subscriptions raise it.
    """

    def __init__(
        self,
        connection: "Connection",
        home: SyncSubscriptionContext,
        channels: ChannelRequests,
        membership: ChannelMembership,
    ) -> None:
        self._connection = connection
        self._home = dataclasses.replace(home, place=membership)
        self._channels = channels
        self._membership = membership

    def publish(self, subject: str, body: Body, **options: Unpack[PublishOptions]) -> Any:
        """Publish to all members of the channel; the options are those of the connection.

        Raises:
            NotOpen: The channel was left.
            WeftError: The reason why the channel ended, or an error of Connection.publish().
        """
        self._ready()
        return self._connection.publish(self._full(subject), body, **options)

    def subscribe(
        self,
        patterns: str | Iterable[str] = ">",
        handler: Handler | None = None,
        **options: Unpack[SubscribeOptions],
    ) -> Subscription:
        """Subscribe to one or several patterns within the channel; default: all subjects.

        Like Connection.subscribe(), but without history.

        Raises:
            NotOpen: The channel was left.
            WeftError: The reason why the channel ended.
        """
        self._membership.check()
        check_plain(handler)
        wish = wish_within(options)
        context = contextvars.copy_context()
        return self._home.background.run(subscribed(self._home, patterns, wish, handler, context))

    def send_request(
        self,
        subject: str,
        body: Body,
        timeout: float | None = None,
        **options: Unpack[RequestOptions],
    ) -> BlockingReceived:
        """Send a request within the channel; see Connection.send_request()."""
        self._ready()
        return self._connection.send_request(self._full(subject), body, timeout, **options)

    def gather(
        self, subject: str, body: Body, *, masked: bool = False, **ending: Unpack[GatherOptions]
    ) -> list[BlockingReceived]:
        """Gather the answers of all members on a subject; see Connection.gather()."""
        self._ready()
        return self._connection.gather(self._full(subject), body, masked=masked, **ending)

    def leave(self) -> None:
        """End the membership and its subscriptions. Idempotent."""
        # A closed connection has left the channel, too.
        with contextlib.suppress(NotOpen):
            self._home.background.run(self._channels.leave(self._membership))

    def close(self) -> None:
        """End the channel for all members; allowed to its opener, services and admins.

        Raises:
            NotAllowed: This connection may not close it.
            NotOpen: The channel was left.
        """
        self._home.background.run(self._channels.close(self._membership))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.leave()

    def _full(self, subject: str) -> str:
        return self._membership.prefix + subject

    def _ready(self) -> None:
        if not self._membership.is_joined:
            self._home.background.run(self._channels.until_joined(self._membership))
