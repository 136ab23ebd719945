"""All exceptions of Weft, grouped by who must act.

    WeftError
    ├── UsageError            wrong use of the API: change the call
    │   ├── BadSubject            a subject or pattern that the grammar forbids
    │   ├── BadField              a value its field cannot hold, or a message too large to send
    │   ├── NoSuchField           a look-up of a name the message does not have
    │   ├── WrongType             a typed look-up of a field of another type
    │   ├── BadOption             an unknown option or setting, or an invalid value
    │   └── NotOpen               a connection or subscription that was closed is used
    ├── ProtocolError         the peer sent what the protocol forbids: end the connection
    │   ├── BadFrame              a frame whose lengths contradict each other
    │   │   └── FrameTooBig           a frame over the limit, refused on its first four bytes
    │   ├── BadMessage            a body that is not a message
    │   │   └── MessageTooBig         a body over the limits on depth, fields or values
    │   ├── BadGreeting           a first frame that is not a proper CONNECT, or a second one
    │   ├── UnexpectedFrame       a kind of frame that this peer may not send
    │   ├── TooSlow               a greeting or a frame that was incomplete at its deadline
    │   ├── ControlFlood          over the rate limit of operations other than messages
    │   ├── BadWord               an invalid control message between gateways
    │   └── BadAdvert             a forged or invalid advertisement
    ├── ConnectionLost        the connection failed or was closed: try again
    │   ├── Unreachable           no gateway answers at the address
    │   ├── TimedOut              no answer came in time
    │   ├── ResponderGone         the responder left before it answered, or the request was lost
    │   ├── Draining              the gateway shuts down: connect to another, or later
    │   ├── SlowReader            the gateway disconnected a slow consumer
    │   ├── Silent                the other end did not answer a ping
    │   ├── Overloaded            the gateway or a buffer is full
    │   ├── JournalFailed         the journal cannot be written now
    │   ├── Redirected            the gateway is at its limit of links: connect to others
    │   ├── DoubledLink           these two gateways are linked already
    │   ├── ClosedByAdmin         an administrator closed the connection
    │   ├── NoMajority            no quorum of gateways to open a protected channel
    │   ├── ChannelContested      another connection is opening a channel of this name
    │   ├── TooManyTries          too many wrong passwords: wait before the next
    │   ├── NotDirect             no lanes to the subscribers of a subject
    │   └── InternalError         the gateway failed; see its log
    └── Refused               the gateway refused: retrying the same call is useless
        ├── NotKnown              a request without a responder
        ├── Reserved              a subject reserved for the system
        ├── NotYours              the inbox or the request of another connection
        ├── NoSuchService         a service that this gateway does not run
        ├── TooMany               over a limit of one connection or key
        ├── BadKey                no key, or one that is not accepted
        ├── NotAllowed            a permission that the key does not have
        ├── NotAdmitted           a gateway that did not prove that it belongs to the mesh
        ├── LinkedToSelf          a gateway that connected to itself
        ├── SameNumber            two gateways of a mesh with the same number
        ├── CopiedKey             two gateways of a mesh with the same `node.key`
        ├── ChannelExists         a channel of this name exists
        ├── WrongPassword         no channel of this name has this password
        ├── ChannelLost           the channel lost its name to another one
        ├── ChannelClosed         the channel was closed for all members
        ├── NotAMember            a channel that this connection has not joined
        └── RequestFailed         the responder answered that it failed

On the wire an error has a number, a name and a text. The thousands determine the client's reaction:
1xxx fix the call, 2xxx end the connection and report a bug, 3xxx connect or try again, 4xxx do not
retry. Numbers are never reused.
"""


class WeftError(Exception):
    """Base class of all exceptions that Weft raises on purpose."""

    number = 0


class UsageError(WeftError, ValueError):
    """Wrong use of the API."""

    number = 1000


class BadSubject(UsageError):
    """A subject or pattern that the grammar forbids."""

    number = 1001


class BadField(UsageError):
    """A value its field type cannot hold, or fields over a limit of messages.

    `field` is the path of the field, such as `a.b[2]`, or empty.
    """

    number = 1002
    field = ""

    def __str__(self) -> str:
        text = Exception.__str__(self)
        return f"field {shortened(self.field)}: {text}" if self.field else text

    def within(self, place: str) -> None:
        """Prefix `field` with the enclosing field or item."""
        joint = "." if self.field and not self.field.startswith("[") else ""
        self.field = f"{place}{joint}{self.field}"


class NoSuchField(UsageError, KeyError):
    """A look-up of a name the message does not have."""

    number = 1003

    # KeyError prints the repr of its argument instead of the text.
    __str__ = Exception.__str__


class WrongType(UsageError, TypeError):
    """A typed look-up of a field of another type."""

    number = 1004


class BadOption(UsageError):
    """An unknown option or setting, or an invalid value of one."""

    number = 1005


class NotOpen(UsageError):
    """A connection or subscription that was closed is used."""

    number = 1006


class ProtocolError(WeftError):
    """The peer violated the protocol; its further input is not trusted."""

    number = 2000


class BadFrame(ProtocolError):
    """A frame whose lengths contradict each other."""

    number = 2001


class FrameTooBig(BadFrame):
    """A frame over the limit; refused on its first four bytes."""

    number = 2002


class BadMessage(ProtocolError):
    """A body that is not a message."""

    number = 2003


class MessageTooBig(BadMessage):
    """A body over the limits on depth, fields or values."""

    number = 2004


class BadGreeting(ProtocolError):
    """A first frame that is not a valid CONNECT, or a second CONNECT."""

    number = 2005


class UnexpectedFrame(ProtocolError):
    """A kind of frame that this peer may not send."""

    number = 2006


class TooSlow(ProtocolError):
    """A greeting or a frame that was incomplete at its deadline."""

    number = 2007


class ControlFlood(ProtocolError):
    """Over the rate limit of operations other than messages."""

    number = 2008


class BadWord(ProtocolError):
    """An invalid control message between gateways, or one over its bounds."""

    number = 2010


class BadAdvert(ProtocolError):
    """A forged or invalid advertisement of a gateway."""

    number = 2011


class ConnectionLost(WeftError, ConnectionError):
    """The connection failed or was closed; the operation may be retried."""

    number = 3000


class Unreachable(ConnectionLost):
    """No gateway answers at the address."""

    number = 3001


class TimedOut(ConnectionLost, TimeoutError):
    """No answer came in time."""

    number = 3002


class ResponderGone(ConnectionLost):
    """The responder left before it answered, or the request was lost on the way."""

    number = 3003


class Draining(ConnectionLost):
    """The gateway shuts down: connect to another, or to this one later."""

    number = 3004


class SlowReader(ConnectionLost):
    """The gateway disconnected a connection that did not read its messages: a slow consumer."""

    number = 3005


class Silent(ConnectionLost):
    """The other end did not answer a ping."""

    number = 3006


class Overloaded(ConnectionLost):
    """The gateway or a buffer is full."""

    number = 3007


class InternalError(ConnectionLost):
    """The gateway failed; see its log."""

    number = 3008


class JournalFailed(ConnectionLost):
    """The journal cannot be written now: the message may not be durable.

    It was not delivered if the journal was failing already. If the disk failed during the write it
    was delivered, and may be journaled later. The text names the case.
    """

    number = 3009


class Redirected(ConnectionLost):
    """The gateway is at its limit of links; it names others to connect to."""

    number = 3010


class DoubledLink(ConnectionLost):
    """These two gateways are linked already."""

    number = 3011


class ClosedByAdmin(ConnectionLost):
    """An administrator closed the connection."""

    number = 3012


class NoMajority(ConnectionLost):
    """No quorum of gateways answered in time to open a protected channel."""

    number = 3013


class ChannelContested(ConnectionLost):
    """Another connection is opening a channel of this name."""

    number = 3014


class TooManyTries(ConnectionLost):
    """Too many wrong passwords for a channel, or from one host: wait before the next."""

    number = 3015


class NotDirect(ConnectionLost):
    """Lanes were requested, but none lead to the subscribers; the text names the reason."""

    number = 3016


class Refused(WeftError):
    """The gateway refused; retrying the same call is useless."""

    number = 4000


class NotKnown(Refused):
    """A request without a responder."""

    number = 4001


class Reserved(Refused):
    """A subject that is reserved for the system."""

    number = 4002


class NotYours(Refused):
    """The inbox or the request of another connection."""

    number = 4003


class NoSuchService(Refused):
    """A service that this gateway does not run."""

    number = 4004


class TooMany(Refused):
    """Over a limit of one connection or key."""

    number = 4005


class BadKey(Refused):
    """Missing, unknown, expired or revoked key; it ends the connection."""

    number = 4006


class NotAllowed(Refused):
    """The key does not have this permission."""

    number = 4007


class NotAdmitted(Refused):
    """The other end of a link did not prove that it belongs to the mesh."""

    number = 4010


class LinkedToSelf(Refused):
    """The other end of a link has the key of this one."""

    number = 4011


class SameNumber(Refused):
    """Another gateway of the mesh has this number already."""

    number = 4012


class ChannelExists(Refused):
    """A channel of this name exists: join it."""

    number = 4013


class WrongPassword(Refused):
    """No channel of this name has this password, or there is no such channel."""

    number = 4014


class ChannelLost(Refused):
    """The channel lost its name to another channel, and is closed."""

    number = 4015


class ChannelClosed(Refused):
    """The channel was closed for all members, by its owner or by a service."""

    number = 4016


class NotAMember(Refused):
    """A channel that this connection has not joined, or has left."""

    number = 4017


class CopiedKey(Refused):
    """Another running gateway has the same `node.key`: a data folder was copied."""

    number = 4019


class RequestFailed(Refused):
    """The responder answered that it failed; the text is the responder's."""

    number = 4018


def error_from_wire(number: int, text: str) -> WeftError:
    """The error of a number on the wire; an unknown number gives the error of its thousand."""
    return _BY_NUMBER.get(number, _BY_NUMBER.get(number // 1000 * 1000, WeftError))(text)


def shortened(text: str) -> str:
    """Quote a text for an error message, cut to 64 characters."""
    return repr(text) if len(text) <= 64 else f"{text[:64]!r}…"


def _tree(root: type[WeftError]) -> dict[int, type[WeftError]]:
    found = {root.number: root}
    for child in root.__subclasses__():
        found.update(_tree(child))
    return found


_BY_NUMBER = _tree(WeftError)
