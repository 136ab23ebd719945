"""What both faces tell of a channel that a connection is in."""

from weft.client.channels.memberships import PREFIX, Membership
from weft.client.options import SubscribeOptions, Wish, made
from weft.client.received import Received
from weft.errors import BadOption, UsageError, WeftError
from weft.wire.message.message import Message


class ChannelFace:
    """One channel, whichever way its user waits for it."""

    _membership: Membership

    def __repr__(self) -> str:
        state = "open" if self.is_open else "over"
        return f"<{type(self).__name__} {self.name}, {state}>"

    @property
    def name(self) -> str:
        """The name that it was opened and joined by."""
        return self._membership.name

    @property
    def id(self) -> str:
        """Which channel of this name it is; another one, perhaps, after the connection was lost."""
        return self._membership.id

    @property
    def is_protected(self) -> bool:
        """Say if it has a password."""
        return self._membership.secret is not None

    @property
    def is_open(self) -> bool:
        """Say if this connection is in it, or will be again once it is back."""
        return not (self._membership.is_over or self._membership.is_leaving)

    @property
    def error(self) -> WeftError | None:
        """Why it ended, if that was not our own wish."""
        return self._membership.error

    @property
    def silent(self) -> tuple[str, ...]:
        """The gateways that did not answer when it was opened here."""
        return self._membership.silent

    def subject_of(self, message: Received | Message) -> str:
        """What a message was sent to, as it is said within the channel.

        Raises:
            UsageError: it was not sent in a channel.
        """
        subject = message.subject
        if not subject.startswith(PREFIX):
            raise UsageError(f"a message to {subject!r} was not sent in a channel")
        return subject[len(PREFIX) :].partition(".")[2]


def wish_within(options: SubscribeOptions) -> Wish:
    """How a subscription in a channel is served.

    Raises:
        BadOption: an option cannot be, or asks for history.
    """
    wish = made(Wish, options)
    if wish.since is not None:
        raise BadOption("what is said in a channel is not kept: it has no history")
    return wish
