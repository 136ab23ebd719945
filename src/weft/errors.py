"""Everything Weft raises, split by who must act.

    WeftError
    ├── UsageError            you called it wrongly: change the call
    │   ├── BadSubject            a subject or pattern that the grammar forbids
    │   ├── BadField              a value its field cannot hold, or a message too large to send
    │   ├── NoSuchField           a look-up of a name the message does not have
    │   ├── WrongType             a typed look-up of a field of another type
    │   ├── BadOption             an option or setting that does not exist or cannot have this value
    │   └── NotOpen               a connection or subscription that was closed is used
    ├── ProtocolError         the peer sent what the protocol forbids: end the connection
    │   ├── BadFrame              a frame whose lengths contradict each other
    │   │   └── FrameTooBig           a frame over the limit, refused on its first four bytes
    │   ├── BadMessage            a body that is not a message
    │   │   └── MessageTooBig         a body over the limits on depth, fields or values
    │   ├── BadGreeting           a first frame that is not a proper CONNECT, or a second one
    │   ├── UnexpectedFrame       a kind of frame that this side never sends
    │   ├── TooSlow               a greeting or a frame that was not finished in time
    │   ├── ControlFlood          more subscribing, unsubscribing and pinging than anyone needs
    │   ├── BadWord               a word between gateways that is none, or over its bounds
    │   └── BadAdvert             an advert that was forged, or says what cannot be
    ├── ConnectionLost        the connection failed or was ended: try again
    │   ├── Unreachable           no gateway answers at the address
    │   ├── TimedOut              no answer came in time
    │   ├── ResponderGone         whoever had the request left before answering, or it was lost
    │   ├── Draining              the gateway is closing down: connect to another, or a little later
    │   ├── SlowReader            the gateway gave up on a connection that did not read
    │   ├── Silent                the other side answered no ping
    │   ├── Overloaded            the gateway, or a buffer, is full at the moment
    │   ├── JournalFailed         the journal cannot be written at the moment
    │   ├── Redirected            the gateway has as many links as it may: go to others
    │   ├── DoubledLink           there is a link between these two gateways already
    │   ├── ClosedByAdmin         an administrator closed the connection
    │   ├── NoMajority            too few gateways can be reached to open a protected channel
    │   ├── ChannelContested      somebody else opens a channel of this name at this moment
    │   ├── TooManyTries          too many wrong passwords: wait before the next
    │   ├── NotDirect             no lane goes where a subject leads
    │   └── InternalError         the gateway failed; its log says how
    └── Refused               the gateway will not do it: do not try again as it is
        ├── NotKnown              a request that nobody serves
        ├── Reserved              a subject that belongs to the system
        ├── NotYours              the inbox or the request of another connection
        ├── NoSuchService         a service that this gateway does not run
        ├── TooMany               over what one connection may have
        ├── BadKey                no key, or one that is not accepted (any more)
        ├── NotAllowed            a right that the key does not have
        ├── NotAdmitted           a gateway that did not prove that it belongs to the mesh
        ├── LinkedToSelf          a gateway that met itself
        ├── SameNumber            two gateways of a mesh that chose the same number
        ├── CopiedKey             two gateways of a mesh that have the same `node.key`
        ├── ChannelExists         a channel of this name is there already
        ├── WrongPassword         no channel of this name has this password
        ├── ChannelLost           another channel has the name now: this one is no more
        ├── ChannelClosed         somebody who may closed the channel for everybody
        ├── NotAMember            a channel that this connection has not joined
        └── RequestFailed         the responder answered that it could not do what was asked

On the wire an error is its number, its name and a sentence. The thousands tell a client what to do:
1xxx fix the call, 2xxx end the connection and report a bug, 3xxx connect or try again, 4xxx do not.
Numbers are never reused.
"""


class WeftError(Exception):
    """The root of everything Weft raises on purpose."""

    number = 0


class UsageError(WeftError, ValueError):
    """The caller asked for something that cannot be."""

    number = 1000


class BadSubject(UsageError):
    """A subject or pattern that the grammar forbids."""

    number = 1001


class BadField(UsageError):
    """A value its field type cannot hold, or fields beyond what one message may carry.

    `field` is the path of the field that it is about, such as `a.b[2]`, or empty.
    """

    number = 1002
    field = ""

    def __str__(self) -> str:
        text = Exception.__str__(self)
        return f"field {shortened(self.field)}: {text}" if self.field else text

    def within(self, place: str) -> None:
        """Note the field or item that it was found in, from the innermost to the outermost."""
        joint = "." if self.field and not self.field.startswith("[") else ""
        self.field = f"{place}{joint}{self.field}"


class NoSuchField(UsageError, KeyError):
    """A look-up of a name the message does not have."""

    number = 1003

    # KeyError prints the repr of its argument; people should read the sentence.
    __str__ = Exception.__str__


class WrongType(UsageError, TypeError):
    """A typed look-up of a field of another type."""

    number = 1004


class BadOption(UsageError):
    """An option or setting that does not exist, or that cannot have this value."""

    number = 1005


class NotOpen(UsageError):
    """A connection or subscription that was closed is used."""

    number = 1006


class ProtocolError(WeftError):
    """The peer sent what the protocol forbids; nothing after it can be trusted."""

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
    """A first frame that is not a proper CONNECT, or a second CONNECT."""

    number = 2005


class UnexpectedFrame(ProtocolError):
    """A kind of frame that this side never sends."""

    number = 2006


class TooSlow(ProtocolError):
    """A greeting or a frame that was not finished in time."""

    number = 2007


class ControlFlood(ProtocolError):
    """More subscribing, unsubscribing and pinging than anyone needs."""

    number = 2008


class BadWord(ProtocolError):
    """A word between gateways that is none, or one that is over its bounds."""

    number = 2010


class BadAdvert(ProtocolError):
    """An advert that was forged, or that says what cannot be."""

    number = 2011


class ConnectionLost(WeftError, ConnectionError):
    """The connection failed or was ended; what was asked for may be tried again."""

    number = 3000


class Unreachable(ConnectionLost):
    """No gateway answers at the address."""

    number = 3001


class TimedOut(ConnectionLost, TimeoutError):
    """No answer came in time."""

    number = 3002


class ResponderGone(ConnectionLost):
    """Whoever had the request left before answering it, or it was lost on its way."""

    number = 3003


class Draining(ConnectionLost):
    """The gateway is closing down: connect to another, or to this one a little later."""

    number = 3004


class SlowReader(ConnectionLost):
    """The gateway gave up on a connection that did not read what it was sent."""

    number = 3005


class Silent(ConnectionLost):
    """The other side answered no ping."""

    number = 3006


class Overloaded(ConnectionLost):
    """The gateway, or a buffer, is full at the moment."""

    number = 3007


class InternalError(ConnectionLost):
    """The gateway failed; its log says how."""

    number = 3008


class JournalFailed(ConnectionLost):
    """The journal cannot be written at the moment: the message is not known to be safe.

    It was not delivered if the journal was failing already; if it was being written when the disk
    failed it was delivered, and may be kept later. The text says which.
    """

    number = 3009


class Redirected(ConnectionLost):
    """The gateway has as many links as it may; it says where else to go."""

    number = 3010


class DoubledLink(ConnectionLost):
    """There is a link between these two gateways already."""

    number = 3011


class ClosedByAdmin(ConnectionLost):
    """An administrator closed the connection."""

    number = 3012


class NoMajority(ConnectionLost):
    """Too few gateways can be reached, or did not answer in time, to open a protected channel."""

    number = 3013


class ChannelContested(ConnectionLost):
    """Somebody else opens a channel of this name at this moment."""

    number = 3014


class TooManyTries(ConnectionLost):
    """Too many wrong passwords for a channel, or from one place: wait before the next."""

    number = 3015


class NotDirect(ConnectionLost):
    """No lane goes where a subject leads, and one was asked for; the text says why."""

    number = 3016


class Refused(WeftError):
    """The gateway will not do it; asking again in the same way will not help."""

    number = 4000


class NotKnown(Refused):
    """A request that nobody serves."""

    number = 4001


class Reserved(Refused):
    """A subject that belongs to the system."""

    number = 4002


class NotYours(Refused):
    """The inbox or the request of another connection."""

    number = 4003


class NoSuchService(Refused):
    """A service that this gateway does not run."""

    number = 4004


class TooMany(Refused):
    """Over what one connection may have."""

    number = 4005


class BadKey(Refused):
    """No key was shown, or one that is unknown, expired or revoked; it ends the connection."""

    number = 4006


class NotAllowed(Refused):
    """The key does not have this right."""

    number = 4007


class NotAdmitted(Refused):
    """The other side of a link did not prove that it belongs to the mesh."""

    number = 4010


class LinkedToSelf(Refused):
    """The other side of a link has the key of this one."""

    number = 4011


class SameNumber(Refused):
    """Another gateway of the mesh has this number already."""

    number = 4012


class ChannelExists(Refused):
    """A channel of this name is there already: join it."""

    number = 4013


class WrongPassword(Refused):
    """No channel of this name has this password; whether there is one at all is not said."""

    number = 4014


class ChannelLost(Refused):
    """Another channel has the name of this one now, which is no more."""

    number = 4015


class ChannelClosed(Refused):
    """The channel was closed for everybody, by whoever opened it or by a service."""

    number = 4016


class NotAMember(Refused):
    """A channel that this connection has not joined, or not any more."""

    number = 4017


class CopiedKey(Refused):
    """Another running gateway has the same `node.key`: a data folder was copied."""

    number = 4019


class RequestFailed(Refused):
    """The responder answered that it could not do what was asked; the text is the responder's."""

    number = 4018


def error_from_wire(number: int, text: str) -> WeftError:
    """The error that a number on the wire stands for; an unknown one is of its thousand."""
    return _BY_NUMBER.get(number, _BY_NUMBER.get(number // 1000 * 1000, WeftError))(text)


def shortened(text: str) -> str:
    """A text as an error may show it: quoted, and cut if it is long."""
    return repr(text) if len(text) <= 64 else f"{text[:64]!r}…"


def _tree(root: type[WeftError]) -> dict[int, type[WeftError]]:
    found = {root.number: root}
    for child in root.__subclasses__():
        found.update(_tree(child))
    return found


_BY_NUMBER = _tree(WeftError)
