"""Properties of a joined channel that the asyncio and the blocking API share."""

from weft.client.channels.memberships import PREFIX, ChannelMembership
from weft.client.options import SubscribeOptions, SubscriptionOptions, made
from weft.client.received import Received
from weft.errors import BadOption, UsageError, WeftError
from weft.wire.message.message import Message


class ChannelFace:
    """Base class of the channels of both APIs."""

    _membership: ChannelMembership

    def __repr__(self) -> str:
        state = "open" if self.is_open else "over"
        return f"<{type(self).__name__} {self.name}, {state}>"

    @property
    def name(self) -> str:
        """The name of the channel."""
        return self._membership.name

    @property
    def id(self) -> str:
        """The id of the channel; a reconnection may join another channel of the same name."""
        return self._membership.id

    @property
    def is_protected(self) -> bool:
        """Whether it has a password."""
        return self._membership.secret is not None

    @property
    def is_open(self) -> bool:
        """Whether this connection is a member, or will be again after it reconnects."""
        return not (self._membership.is_over or self._membership.is_leaving)

    @property
    def error(self) -> WeftError | None:
        """The reason why the membership ended, or None after leave() or close()."""
        return self._membership.error

    @property
    def silent(self) -> tuple[str, ...]:
        """The gateways that did not answer when this connection opened the channel."""
        return self._membership.silent

    def subject_of(self, message: Received | Message) -> str:
        """Return the subject of a message relative to the channel.

        Raises:
            UsageError: The message was not sent in a channel.
        """
        subject = message.subject
        if not subject.startswith(PREFIX):
            raise UsageError(f"a message to {subject!r} was not sent in a channel")
        return subject[len(PREFIX) :].partition(".")[2]


def wish_within(options: SubscribeOptions) -> SubscriptionOptions:
    """Return the options of a subscription in a channel.

    Raises:
        BadOption: Invalid option, or `since`, because channels have no history.
    """
    wish = made(SubscriptionOptions, options)
    if wish.since is not None:
        raise BadOption("channels have no history: leave out the option since")
    return wish
