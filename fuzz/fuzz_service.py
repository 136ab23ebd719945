"""Two peers of one service say anything in any order; nothing may escape, and nothing be left over.

The first byte of an input says how it is cut: who says how many of the bytes that follow.
"""

from collections.abc import Iterator

from fuzz.targets import Broken, Target
from weft.broker.disconnect import leave
from weft.broker.ingest import feed
from weft.broker.limits import Limits
from weft.broker.service import Peer, Service
from weft.broker.sweep import sweep
from weft.wire.frames import Decoder, Kind, encode, parse
from weft.wire.message.message import Message

_LIMITS = Limits(body_bytes=4096, subscriptions=64, requests=8, control_burst=64, flows=16)
_TOKEN = 7
_S = 1_000_000_000


class _Door:
    """A door that leads nowhere."""

    def fall_behind(self) -> None:
        """Nothing is sent, so everything falls behind."""

    def press(self) -> None:
        """Nothing is sent, however often it is tried."""

    def resume(self) -> None:
        """Nobody is held here."""

    def finish(self) -> None:
        """Nothing is open."""

    def abort(self) -> None:
        """Nothing is open."""


def outcome(data: bytes) -> str:
    """Everything that both peers hear, and how the service counted it."""
    service = Service("default", "fuzz", 1, _LIMITS)
    peers = [service.join(_TOKEN, _Door()) for _ in range(2)]
    for peer in peers:
        _say(peer, encode(Kind.CONNECT, b"default"))
    for number, part in enumerate(_parts(data)):
        service.now_ns = service.wall_ns = number * _S
        _say(peers[number % 2], part)
        sweep(service)
    heard = [_heard(peer) for peer in peers]
    service.arena.reset()
    for peer in peers:
        leave(peer)
    if service.peers or service.inboxes or len(service.router) or service.flow_count:
        raise Broken("something of a peer that left is still there")
    if any(peer.outbox.busy for peer in peers):
        raise Broken("a peer that left is still busy")
    return f"{heard} {service.total.messages} {service.deliveries} {service.refused}"


def seeds() -> Iterator[bytes]:
    """Conversations that make sense, for the fuzzer to spoil."""
    inbox = b"_INBOX.00000001.000000010000000000000007"
    subscribe = encode(Kind.SUBSCRIBE, b"a.*", flags=1)
    grouped = encode(Kind.SUBSCRIBE, b"a.>", Message(policy="latest").encode(), b"g")
    message = encode(Kind.MESSAGE, b"a.b", b"hello", flags=8)
    request = encode(Kind.MESSAGE, b"a.b", b"", inbox + b".1", flags=2)
    answer = encode(Kind.MESSAGE, inbox + b".1", b"", flags=8)
    ask = encode(Kind.MESSAGE, b"_WEFT.ask.flows", b"\0\0\0\0", inbox + b".2", flags=3)
    others = [encode(Kind.PING), encode(Kind.UNSUBSCRIBE, b"a.*"), encode(Kind.GOODBYE)]
    for frames in ([subscribe, message], [grouped, request, answer], [ask, message], others):
        for cut in (1, 40, 255):
            yield bytes([cut]) + b"".join(frames)


def _parts(data: bytes) -> Iterator[bytes]:
    step = max(1, data[0]) if data else 1
    for at in range(1, len(data), step):
        yield data[at : at + step]


def _say(peer: Peer, data: bytes) -> None:
    """What a door does with one read, but for frames too large for it."""
    arena = peer.service.arena
    if peer.is_over or peer.large_size:
        return
    start = arena.put(peer.rest)
    if start < 0 or arena.put(data) < 0:
        return
    feed(peer, start, arena.fill)


def _heard(peer: Peer) -> list[str]:
    """Everything a peer is owed, as it would be sent."""
    outbox = peer.outbox
    outbox.settle(peer.service.now_ns)
    decoder = Decoder(_LIMITS.outbox_bytes)
    while outbox.is_behind():
        piece = bytes(outbox.take(1 << 16, peer.service.now_ns))
        decoder.feed(piece)
        outbox.taken(len(piece))
    heard = []
    while (frame := decoder.next_frame()) is not None:
        parts = parse(frame)
        heard.append(f"{parts.kind}:{parts.subject!r}:{parts.body!r}")
    return heard


TARGET = Target(outcome, seeds, (b"_INBOX.", b"_WEFT.ask.", b"_LOCAL.", b"a.b", b"*", b">"))
