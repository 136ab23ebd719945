"""The channels that one connection is a member of, as the engine knows them.

They outlive the line that they were joined over. Each is joined anew over the next, perhaps by
another id, and only then is a gateway asked for what is heard in it.
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


class Membership:
    """One channel that was joined, or is just being joined; the place of its subscriptions."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.id = ""
        self.prefix = ""
        # Only keys: the password itself is forgotten once they are made.
        self.secret: Secret | None = None
        self.silent: tuple[str, ...] = ()
        self.has_opened = False
        # Between an answer that lets us in and the end of the line that it came over.
        self.is_joined = False
        self.is_leaving = False
        self.is_over = False
        self.error: WeftError | None = None
        self.settled = asyncio.Event()

    def __repr__(self) -> str:
        return f"<Membership of {self.name}>"

    def entered(self, channel_id: str) -> None:
        """A gateway let us in; see joined()."""
        self.id = channel_id
        self.prefix = f"{PREFIX}{channel_id}."

    def joined(self) -> None:
        """Messages may be sent now."""
        self.is_joined = True
        self.settled.set()

    def parted(self) -> None:
        """The line is gone, and with it what it had joined."""
        self.is_joined = False
        if not self.is_over:
            self.settled.clear()

    def end(self, error: WeftError | None) -> None:
        """Be a member no more."""
        self.is_over = True
        self.is_joined = False
        self.error = error
        self.settled.set()

    def check(self) -> None:
        """Refuse to be used after the end.

        Raises:
            NotOpen: it was left.
            WeftError: why it ended otherwise.
        """
        if self.is_over or self.is_leaving:
            raise self.error or NotOpen(f"the channel {self.name!r} was left")

    async def until_joined(self) -> None:
        """Wait until it was joined again, if the connection was lost.

        Raises:
            NotOpen: it was left.
            WeftError: why it ended otherwise.
        """
        # It may be lost again before whoever waits has its turn.
        while not (self.is_joined or self.is_over):
            await self.settled.wait()
        self.check()


Again = Callable[[Membership], Coroutine[object, object, None]]


class Memberships:
    """All of them; `again` joins one anew, and is told by whoever can ask the gateway."""

    def __init__(self, subscriptions: Subscriptions, reporter: Reporter) -> None:
        self.again: Again | None = None
        self._subscriptions = subscriptions
        self._reporter = reporter
        self._by_name: dict[str, Membership] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def reserve(self, name: str) -> Membership:
        """Begin with a channel.

        Raises:
            UsageError: this connection is in it already.
        """
        if name in self._by_name:
            raise UsageError(f"this connection is in the channel {name!r} already")
        membership = Membership(name)
        self._by_name[name] = membership
        return membership

    def forget(self, membership: Membership) -> None:
        """End with a channel that was not joined after all."""
        if self._by_name.get(membership.name) is membership:
            del self._by_name[membership.name]

    def resume(self, membership: Membership) -> None:
        """Hear in a channel, which was joined, what was heard there before.

        Raises:
            Overloaded: the gateway does not read.
        """
        self._subscriptions.resume(membership)
        # Only now may others publish: what they say must be heard by themselves, too.
        membership.joined()

    def end(self, membership: Membership, error: WeftError | None) -> None:
        """End with a channel, and with what is heard there; it is taken back while we are in it.

        Raises:
            Overloaded: the gateway does not read.
        """
        self.forget(membership)
        try:
            self._subscriptions.leave(membership, error)
        finally:
            membership.end(error)
        if error is not None:
            detail = f"the channel {membership.name} is no more"
            self._reporter.report(Status(What.REFUSED, detail, error))

    def taken_back(self, event: TakenBack) -> bool:
        """Say if what a gateway took back is more than one subscription, and then end with it.

        Raises:
            Overloaded: the gateway does not read.
        """
        if not event.pattern.startswith(PREFIX.encode()):
            return False
        is_asked = bool(self._subscriptions.interests.asking(event.pattern, event.group))
        membership = self._at(event.pattern)
        if membership is None or (is_asked and not isinstance(event.error, _OVER)):
            # What nobody asks for any more ended with its channel, just before.
            return not is_asked
        membership.is_joined = False
        is_ours = membership.is_leaving and isinstance(event.error, ChannelClosed)
        self.end(membership, None if is_ours else event.error)
        return True

    def welcomed(self) -> None:
        """There is a new line: join everything again."""
        for membership in self._by_name.values():
            # One without an id is being joined by whoever waits for it.
            if membership.id and self.again is not None:
                task = asyncio.ensure_future(self.again(membership))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def parted(self) -> None:
        """The line is gone."""
        self._cancel()
        for membership in self._by_name.values():
            membership.parted()

    def clear(self) -> None:
        """The connection is closed."""
        self._cancel()
        for membership in self._by_name.values():
            membership.end(None)
        self._by_name.clear()

    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _at(self, pattern: bytes) -> Membership | None:
        """The channel that a pattern stands for as a whole."""
        for membership in self._by_name.values():
            if membership.is_joined and pattern == f"{membership.prefix}>".encode():
                return membership
        return None
