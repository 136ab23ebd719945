"""Events of a gateway, published on `_WEFT.event.` subjects."""

from weft.broker.service import Peer, Service
from weft.wire.frames import Kind, begin_frame, end_frame, stamp_frame
from weft.wire.message.message import Message

PREFIX = "_WEFT.event."


def is_heard(service: Service, event: str) -> bool:
    """Return whether an event has subscribers."""
    route = service.router.route(f"{PREFIX}{event}".encode())
    return route is not None and not route.is_empty()


def announce(service: Service, event: str, message: Message) -> None:
    """Publish an event of the gateway; costs next to nothing without subscribers."""
    subject = f"{PREFIX}{event}".encode()
    route = service.router.route(subject)
    if route is None or route.is_empty():
        return
    writer = service.writer
    start = begin_frame(writer, Kind.MESSAGE, 0, subject, b"")
    message.put(writer)
    end_frame(writer, start)
    service.stamp.publisher = 0
    service.stamp.time_ns = service.wall_ns
    stamp_frame(writer.data, start, service.stamp)
    frame = writer.take()
    at = service.arena.put(frame)
    if at >= 0:
        service.deliveries += route.deliver(at, at + len(frame), None, False)
        return
    for outbox in {*route.outboxes, *[group.members[0] for group in route.groups]}:
        outbox.hold(frame, service.now_ns)
        service.deliveries += 1


def announce_peer(peer: Peer, event: str, **facts: object) -> None:
    """Publish an event about one connection."""
    if not is_heard(peer.service, event):
        return
    message = Message(connection=peer.number, name=peer.name, service=peer.service.name, **facts)
    announce(peer.service, event, message)
