"""Channel memberships of one connection.

They outlive a disconnection. After a reconnection each channel is joined again, perhaps with
another id, and only then are its subscriptions sent to the gateway.
"""

import asyncio
from collections.abc import Callable, Coroutine

from weft.client.connection.events import TakenBack
from weft.client.status import Reporter, Status, What
from weft.client.subscriptions.subscriptions import Subscriptions
from weft.errors import ChannelClosed, ChannelLost, NotAMember, NotOpen, UsageError, WeftError
from weft.wire.password_proof import Secret

PREFIX = "_CHANNEL."

_OVER = (ChannelClosed, ChannelLost, NotAMember)


class ChannelMembership:
    """Membership of one channel, joined or being joined; provides the prefix of its subjects."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.id = ""
        self.prefix = ""
        # Derived keys only: the password is discarded once they are derived.
        self.secret: Secret | None = None
        self.silent: tuple[str, ...] = ()
        self.has_opened = False
        # From the answer that admits this connection until it is lost.
        self.is_joined = False
        self.is_leaving = False
        self.is_over = False
        self.error: WeftError | None = None
        self.settled = asyncio.Event()

    def __repr__(self) -> str:
        return f"<Membership of {self.name}>"

    def entered(self, channel_id: str) -> None:
        """Set the id that the gateway assigned; joined() follows."""
        self.id = channel_id
        self.prefix = f"{PREFIX}{channel_id}."

    def joined(self) -> None:
        """Allow publishing in the channel."""
        self.is_joined = True
        self.settled.set()

    def parted(self) -> None:
        """Handle the loss of the connection, which ends the membership at the gateway."""
        self.is_joined = False
        if not self.is_over:
            self.settled.clear()

    def end(self, error: WeftError | None) -> None:
        """End the membership."""
        self.is_over = True
        self.is_joined = False
        self.error = error
        self.settled.set()

    def check(self) -> None:
        """Raise if the membership has ended.

        Raises:
            NotOpen: The channel was left.
            WeftError: The reason why it ended otherwise.
        """
        if self.is_over or self.is_leaving:
            raise self.error or NotOpen(f"the channel {self.name!r} was left")

    async def until_joined(self) -> None:
        """Wait until the channel is joined again after a disconnection.

        Raises:
            NotOpen: The channel was left.
            WeftError: The reason why it ended otherwise.
        """
        # It may be lost again before the waiting task runs.
        while not (self.is_joined or self.is_over):
            await self.settled.wait()
        self.check()


Again = Callable[[ChannelMembership], Coroutine[object, object, None]]


class Memberships:
    """All memberships of a connection; `again` rejoins one, and is set by the API layer."""

    def __init__(self, subscriptions: Subscriptions, reporter: Reporter) -> None:
        self.again: Again | None = None
        self._subscriptions = subscriptions
        self._reporter = reporter
        self._by_name: dict[str, ChannelMembership] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def reserve(self, name: str) -> ChannelMembership:
        """Reserve a channel name for a membership that is to be joined.

        Raises:
            UsageError: This connection is already a member.
        """
        if name in self._by_name:
            raise UsageError(f"this connection is in the channel {name!r} already")
        membership = ChannelMembership(name)
        self._by_name[name] = membership
        return membership

    def forget(self, membership: ChannelMembership) -> None:
        """Remove a membership that was not joined, or has ended."""
        if self._by_name.get(membership.name) is membership:
            del self._by_name[membership.name]

    def resume(self, membership: ChannelMembership) -> None:
        """Restore the subscriptions of a channel that was joined again.

        Raises:
            Overloaded: The gateway does not read.
        """
        self._subscriptions.resume(membership)
        # Publishing comes after subscribing: publishers receive their own messages, too.
        membership.joined()

    def end(self, membership: ChannelMembership, error: WeftError | None) -> None:
        """End a membership and its subscriptions; unsubscribes first if still a member.

        Raises:
            Overloaded: The gateway does not read.
        """
        self.forget(membership)
        try:
            self._subscriptions.leave(membership, error)
        finally:
            membership.end(error)
        if error is not None:
            detail = f"the channel {membership.name} ended"
            self._reporter.report(Status(What.REFUSED, detail, error))

    def taken_back(self, event: TakenBack) -> bool:
        """Handle a revoked subscription that stands for a channel: end the membership.

        Returns whether the event was handled, that is, concerned more than one subscription.

        Raises:
            Overloaded: The gateway does not read.
        """
        if not event.pattern.startswith(PREFIX.encode()):
            return False
        is_asked = bool(self._subscriptions.interests.asking(event.pattern, event.group))
        membership = self._at(event.pattern)
        if membership is None or (is_asked and not isinstance(event.error, _OVER)):
            # A subscription that is not registered any more ended with its channel just before.
            return not is_asked
        membership.is_joined = False
        is_ours = membership.is_leaving and isinstance(event.error, ChannelClosed)
        self.end(membership, None if is_ours else event.error)
        return True

    def welcomed(self) -> None:
        """Join all channels again over a new connection."""
        for membership in self._by_name.values():
            # One without an id is still being joined by its caller.
            if membership.id and self.again is not None:
                task = asyncio.ensure_future(self.again(membership))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def parted(self) -> None:
        """Handle the loss of the connection."""
        self._cancel()
        for membership in self._by_name.values():
            membership.parted()

    def clear(self) -> None:
        """End all memberships; the connection is closed."""
        self._cancel()
        for membership in self._by_name.values():
            membership.end(None)
        self._by_name.clear()

    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _at(self, pattern: bytes) -> ChannelMembership | None:
        """Return the joined channel whose subjects a pattern covers entirely."""
        for membership in self._by_name.values():
            if membership.is_joined and pattern == f"{membership.prefix}>".encode():
                return membership
        return None
