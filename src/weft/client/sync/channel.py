"""A channel of the blocking face: what is said and heard in it."""

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from weft.client.channels.base import ChannelFace, wish_within
from weft.client.channels.memberships import Membership
from weft.client.channels.requests import Channels
from weft.client.options import (
    GatherOptions,
    PublishOptions,
    RequestOptions,
    SubscribeOptions,
)
from weft.client.publish.encode import Body
from weft.client.received import BlockingReceived
from weft.client.sync.dispatch_batch import Handler, check_plain
from weft.client.sync.subscription import Home, Subscription, subscribed
from weft.errors import NotOpen

if TYPE_CHECKING:
    from weft.client.sync.connection import Connection


class Channel(ChannelFace):
    """A channel that a connection opened or joined; leave it to be in it no more.

    After a loss the connection joins it again by itself, and what is said meanwhile waits for that.
    If it cannot be joined again, or is closed or lost, `error` says why, and so do its
    subscriptions.
    """

    def __init__(
        self,
        connection: "Connection",
        home: Home,
        channels: Channels,
        membership: Membership,
    ) -> None:
        self._connection = connection
        self._home = dataclasses.replace(home, place=membership)
        self._channels = channels
        self._membership = membership

    def publish(self, subject: str, body: Body, **options: Unpack[PublishOptions]) -> Any:
        """Say something to everybody in the channel; the options are those of a connection.

        Raises:
            NotOpen: the channel was left.
            WeftError: why the channel ended, or what Connection.publish() raises.
        """
        self._ready()
        return self._connection.publish(self._full(subject), body, **options)

    def subscribe(
        self,
        patterns: str | Iterable[str] = ">",
        handler: Handler | None = None,
        **options: Unpack[SubscribeOptions],
    ) -> Subscription:
        """Hear what is said in the channel to a pattern, or to several, or to any.

        It is like Connection.subscribe(), but has no history.

        Raises:
            NotOpen: the channel was left.
            WeftError: why the channel ended.
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
        """Ask whoever in the channel serves a subject; see Connection.send_request()."""
        self._ready()
        return self._connection.send_request(self._full(subject), body, timeout, **options)

    def gather(
        self, subject: str, body: Body, *, masked: bool = False, **ending: Unpack[GatherOptions]
    ) -> list[BlockingReceived]:
        """Ask everybody in the channel who hears a subject; see Connection.gather()."""
        self._ready()
        return self._connection.gather(self._full(subject), body, masked=masked, **ending)

    def leave(self) -> None:
        """Be in it no more; its subscriptions end. Harmless if done before."""
        # With the connection it was left, too.
        with contextlib.suppress(NotOpen):
            self._home.background.run(self._channels.leave(self._membership))

    def close(self) -> None:
        """End it for everybody, which takes whoever opened it, a service or an admin.

        Raises:
            NotAllowed: this connection may not.
            NotOpen: it was left before.
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
