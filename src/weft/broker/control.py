"""Handle inbound frames other than MESSAGE: SUBSCRIBE, UNSUBSCRIBE, PING, GOODBYE, LANE, TAIL.

A refused frame has no effect and the connection continues, unless the error is a ProtocolError.
Their rate is limited by a credit that refills with time.
"""

from weft.broker.handshake import greet
from weft.broker.lane_hooks import Laning
from weft.broker.rate_limit import spend
from weft.broker.replies import acknowledge, ok_frame, refuse
from weft.broker.service import Peer
from weft.broker.subscribe import subscribe, unsubscribe
from weft.errors import Refused, UnexpectedFrame, UsageError
from weft.wire.byteops import cut, u32_at
from weft.wire.frames import Flag, Frame, Kind, Run, encode, parse

PING_MAX_BYTES = 64

_ANSWER = int(Flag.ANSWER)
_CONNECT = int(Kind.CONNECT)
_SUBSCRIBE = int(Kind.SUBSCRIBE)
_UNSUBSCRIBE = int(Kind.UNSUBSCRIBE)
_PING = int(Kind.PING)
_PONG = int(Kind.PONG)
_GOODBYE = int(Kind.GOODBYE)
_LANE = int(Kind.LANE)
_TAIL = int(Kind.TAIL)


def control(peer: Peer, run: Run) -> None:
    """Handle a run of frames that are not messages, or that precede the greeting.

    Raises:
        ProtocolError: protocol violation; later frames of the run are ignored.
    """
    laning = peer.service.laning
    if run.kind == _TAIL and peer.lanes and laning is not None:
        _pass_tails(peer, run, laning)
        return
    data = peer.service.arena.data
    at = run.start
    while at < run.end and not peer.is_over:
        size = u32_at(data, at)
        spend(peer, 1)
        whole = cut(data, at, at + size)
        frame = parse(whole)
        try:
            if frame.kind == _LANE:
                _deal_with_lanes(peer, frame, whole)
            else:
                _deal(peer, frame)
        except (UsageError, Refused) as error:
            refuse(peer, at, error)
            if not peer.is_greeted:
                peer.end(error)
        else:
            if frame.flags & _ANSWER:
                _acknowledge(peer, at)
        at += size


def _deal(peer: Peer, frame: Frame) -> None:
    kind = frame.kind
    if not peer.is_greeted or kind == _CONNECT:
        greet(peer, frame)
    elif kind == _SUBSCRIBE:
        subscribe(peer, frame)
        if peer.service.laning is not None:
            peer.service.laning.subscribed(peer)
    elif kind == _UNSUBSCRIBE:
        unsubscribe(peer, frame)
        if peer.service.laning is not None:
            peer.service.laning.unsubscribed()
    elif kind == _PING:
        if len(frame.body) > PING_MAX_BYTES:
            raise UsageError(f"a ping of {len(frame.body)} bytes is over {PING_MAX_BYTES}")
        _owe_in_time(peer, encode(Kind.PONG, body=frame.body))
    elif kind == _GOODBYE:
        peer.end(None)
    elif kind != _PONG:
        raise UnexpectedFrame(f"a client does not send frames of kind {kind}")


def _deal_with_lanes(peer: Peer, frame: Frame, whole: bytes) -> None:
    laning = peer.service.laning
    if laning is None or not peer.lanes:
        # A peer that has not announced lanes, or is not greeted yet: an ordinary frame.
        _deal(peer, frame)
    else:
        laning.take(peer, frame.subject, whole)


def _pass_tails(peer: Peer, run: Run, laning: Laning) -> None:
    """Relay messages that lanes did not deliver; they cost no credit, like other messages."""
    data = peer.service.arena.data
    at = run.start
    while at < run.end:
        problem = laning.pass_tail(peer, at)
        if problem is not None:
            refuse(peer, at, problem)
        at += u32_at(data, at)


def _acknowledge(peer: Peer, at: int) -> None:
    laning = peer.service.laning
    if laning is not None and laning.holds(peer):
        laning.hold(peer, ok_frame(peer.service.arena.data, at))
    else:
        acknowledge(peer, at)


def _owe_in_time(peer: Peer, frames: bytes) -> None:
    """Send frames that confirm all earlier ones, after those were handled."""
    laning = peer.service.laning
    if laning is not None and laning.holds(peer):
        laning.hold(peer, frames)
    else:
        peer.owe(frames)
