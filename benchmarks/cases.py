"""What the core is asked to do, in pieces small enough to time.

A case is a function that prepares and returns (work, operations): calling `work()` performs that
many operations.
"""

from collections.abc import Callable

from weft.broker.delivery.arena import Arena
from weft.broker.delivery.outbox import Outbox
from weft.broker.delivery.policy import Bounds
from weft.broker.metering import Meter
from weft.broker.routing.router import Router
from weft.wire.frames import Decoder, Kind, Run, Stamp, encode
from weft.wire.message.message import Message

Case = tuple[Callable[[], object], int]

SUBJECT = b"sensors.london.temp"
FRAME = encode(Kind.MESSAGE, SUBJECT, b"x" * 77)  # 128 bytes
FRAMES = 200


def read_a_frame() -> Case:
    """Find, check and stamp the frames of one read."""
    data = bytearray(FRAME * FRAMES)
    run = Run()
    stamp = Stamp(origin=1)

    def work() -> None:
        run.read(data, 0, len(data))
        run.stamp(data, stamp)

    return work, FRAMES


def decode_a_frame() -> Case:
    """Bytes in, frames out, one bytes object each: what a client does."""
    data = FRAME * FRAMES

    def work() -> None:
        decoder = Decoder()
        decoder.feed(data)
        while decoder.next_frame() is not None:
            pass

    return work, FRAMES


def route_to_10_outboxes() -> Case:
    """Look up the route of a frame and push it to ten outboxes."""
    arena, router, outboxes = _town(10)

    def work() -> None:
        arena.put(FRAME * FRAMES)
        for at in range(0, FRAMES * len(FRAME), len(FRAME)):
            route = router.route(SUBJECT)
            if route is not None:
                route.deliver(at, at + len(FRAME), None, False)
        for outbox in outboxes:
            outbox.sent(outbox.pending)
        arena.reset()

    return work, FRAMES


def turn_1_to_1() -> Case:
    """A whole turn for one receiver: read, stamp, meter, route, push, gather. Per delivery."""
    return _turn(1)


def turn_fan_out_100() -> Case:
    """A whole turn for a hundred receivers. Per delivery."""
    return _turn(100)


def encode_6_fields() -> Case:
    """Build a message of six fields and encode it."""

    def work() -> None:
        for _ in range(FRAMES):
            _message().encode()

    return work, FRAMES


def decode_6_fields() -> Case:
    """Read all six fields of a received message."""
    body = _message().encode()

    def work() -> None:
        for _ in range(FRAMES):
            Message.from_body(body).get("ok")

    return work, FRAMES


def _message() -> Message:
    return Message(city="London", temp=21.5, count=7, ok=True, station="heathrow", level=-3)


def _town(receivers: int) -> tuple[Arena, Router, list[Outbox]]:
    arena = Arena()
    router = Router()
    outboxes = [Outbox(arena, Bounds()) for _ in range(receivers)]
    for outbox in outboxes:
        router.subscribe(outbox, b"sensors.>")
    return arena, router, outboxes


def _turn(receivers: int) -> Case:
    arena, router, outboxes = _town(receivers)
    frames = FRAME * FRAMES
    run = Run()
    stamp = Stamp(origin=1)
    meter = Meter(0)

    def work() -> None:
        at = arena.put(frames)
        end = arena.fill
        while run.read(arena.data, at, end):
            run.stamp(arena.data, stamp)
            subject = run.subject(arena.data)
            meter.flow(subject, 0).record(run.count, run.end - run.start, 0)
            route = router.route(subject)
            if route is not None:
                route.deliver(run.start, run.end, None, False)
            at = run.end
        for outbox in outboxes:
            outbox.gather()
            outbox.sent(outbox.gathered)
        arena.reset()

    return work, FRAMES * receivers


CASES = {
    case.__name__: case
    for case in (
        read_a_frame,
        decode_a_frame,
        route_to_10_outboxes,
        turn_1_to_1,
        turn_fan_out_100,
        encode_6_fields,
        decode_6_fields,
    )
}
