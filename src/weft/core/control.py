"""Everything a peer says that is not a message, frame by frame.

A refused frame has no effect and the connection goes on, unless the error is a breach of the
protocol. How many there may be is bounded by a credit that time restores.
"""

from weft.core.answers import acknowledge, refuse
from weft.core.credit import spend
from weft.core.frames import Flag, Frame, Kind, Run, encode, parse
from weft.core.greeting import greet
from weft.core.service import Peer
from weft.core.subscribing import subscribe, unsubscribe
from weft.core.words import cut, u32_at
from weft.errors import Refused, UnexpectedFrame, UsageError

PING_MAX_BYTES = 64

_ANSWER = int(Flag.ANSWER)
_CONNECT = int(Kind.CONNECT)
_SUBSCRIBE = int(Kind.SUBSCRIBE)
_UNSUBSCRIBE = int(Kind.UNSUBSCRIBE)
_PING = int(Kind.PING)
_PONG = int(Kind.PONG)
_GOODBYE = int(Kind.GOODBYE)


def control(peer: Peer, run: Run) -> None:
    """Deal with a run of frames that are not messages, or that come before the greeting.

    Raises:
        ProtocolError: one of them breaks the protocol; nothing after it counts.
    """
    data = peer.service.arena.data
    at = run.start
    while at < run.end and not peer.is_over:
        size = u32_at(data, at)
        spend(peer, 1)
        frame = parse(cut(data, at, at + size))
        try:
            _deal(peer, frame)
        except (UsageError, Refused) as error:
            refuse(peer, at, error)
            if not peer.is_greeted:
                peer.end(error)
        else:
            if frame.flags & _ANSWER:
                acknowledge(peer, at)
        at += size


def _deal(peer: Peer, frame: Frame) -> None:
    kind = frame.kind
    if not peer.is_greeted or kind == _CONNECT:
        greet(peer, frame)
    elif kind == _SUBSCRIBE:
        subscribe(peer, frame)
    elif kind == _UNSUBSCRIBE:
        unsubscribe(peer, frame)
    elif kind == _PING:
        if len(frame.body) > PING_MAX_BYTES:
            raise UsageError(f"a ping of {len(frame.body)} bytes is over {PING_MAX_BYTES}")
        peer.owe(encode(Kind.PONG, body=frame.body))
    elif kind == _GOODBYE:
        peer.end(None)
    elif kind != _PONG:
        raise UnexpectedFrame(f"a client does not send frames of kind {kind}")
