"""A short tour of the core, for people: `make run` until there is a gateway to run.

Everything shown is computed here and now by the same code a gateway will use.
"""

from weft import Field, Message
from weft.core import codec, frames
from weft.core.arena import Arena
from weft.core.bounds import Bounds, Policy
from weft.core.frames import Decoder, Kind, Run, Stamp
from weft.core.outbox import Outbox
from weft.core.router import Router


def main() -> None:
    """Publish a few messages through the core and show what each receiver gets."""
    is_compiled = codec.__file__.endswith(".so")
    print(f"Weft core, {'compiled' if is_compiled else 'interpreted'}\n")
    message = Message(Field.uint32("station", 7), city="London", temp=21.5, tags=["roof", "north"])
    print("a message         ", message)
    print("as JSON           ", message.to_json())
    print("on the wire       ", len(message.encode()), "bytes\n")

    arena = Arena()
    router = Router()
    readers = {
        name: Outbox(arena, Bounds(limit_bytes=8192))
        for name in ("literal", "star", "tail", "slow")
    }
    router.subscribe(readers["literal"], b"sensors.london.temp")
    router.subscribe(readers["star"], b"sensors.*.temp")
    router.subscribe(readers["tail"], b"sensors.>")
    router.subscribe(readers["slow"], b"sensors.>", policy=Policy.DROP_OLD)

    _publish(
        arena, router, message, ["sensors.london.temp", "sensors.paris.temp", "sensors.oslo.wind"]
    )
    for name in ("literal", "star", "tail"):
        print(f"reader {name!r:<11}", ", ".join(_received(readers[name])))
    readers["slow"].settle(0)
    arena.reset()

    print("\nnow one reader stops reading while 1,000 messages are sent …")
    for _ in range(10):
        _publish(arena, router, message, ["sensors.london.temp"] * 100)
        readers["slow"].settle(0)
        for name in ("literal", "star", "tail"):
            readers[name].sent(readers[name].pending)
        arena.reset()
    cost = readers["slow"].cost()
    print(f"reader 'slow'      costs {cost:,} bytes of at most 8,192, and then gets:")
    for line in _received(readers["slow"])[:2]:
        print("                  ", line)
    print("\nEvery loss is announced. See README.md, docs/protocol.md and `make help`.")


def _publish(arena: Arena, router: Router, message: Message, subjects: list[str]) -> None:
    """What a gateway does with one read."""
    body = message.encode()
    start = arena.put(b"".join(frames.encode(Kind.MESSAGE, s.encode(), body) for s in subjects))
    run = Run()
    stamp = Stamp(origin=1, publisher=1)
    while run.read(arena.data, start, arena.fill):
        run.stamp(arena.data, stamp)
        route = router.route(run.subject(arena.data))
        if route is not None:
            route.deliver(run.start, run.end, None, False)
        start = run.end


def _received(outbox: Outbox) -> list[str]:
    """What a client would see if everything owed were sent now."""
    decoder = Decoder()
    if not outbox.is_behind():
        start = outbox.gather()
        decoder.feed(bytes(outbox.arena.data[start : start + outbox.gathered]))
        outbox.sent(outbox.gathered)
    while outbox.is_behind():
        taken = bytes(outbox.take(65_536, 0))
        decoder.feed(taken)
        outbox.taken(len(taken))
    received = map(Message.from_frame, iter(decoder.next_frame, None))
    return [
        m.subject or f"a gap: {m['count']} messages dropped, reason {m['reason']!r}"
        for m in received
    ]


if __name__ == "__main__":
    main()
