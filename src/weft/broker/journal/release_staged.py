"""Messages that were staged before, published all at once by one who is no connection.

Whoever writes in two steps sends rows that nobody gets yet, and then says that they count. Then
they are published in their order, with a publisher's number of their own: what the journal has of
that number says how far it came if it was cut short.
"""

from weft.broker.auth.permissions import PUBLISH, Rights, may_not
from weft.broker.service import Service
from weft.errors import BadFrame, BadSubject, Reserved
from weft.wire.byteops import cut, u32_at
from weft.wire.frames import HEADER_BYTES, Flag, Kind, Run
from weft.wire.subjects import PIPELINE, is_reserved, is_subject

_MESSAGE = int(Kind.MESSAGE)
_BARE = int(Flag.BARE)
_OPEN = (b"_LOCAL.", PIPELINE)
_HEADER = HEADER_BYTES
_MAY_PUBLISH = PUBLISH


class Release:
    """One publisher of staged messages.

    The first `known` of those that are kept are out already, and are left out.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self.known = 0
        self.is_begun = False
        self.publisher = service.next_number() & 0xFFFFFFFF

    def publish(self, start: int, end: int) -> None:
        """Publish checked messages that lie in the arena."""
        service = self._service
        data = service.arena.data
        run = service.run
        stamp = service.stamp
        stamp.publisher = self.publisher
        stamp.time_ns = service.wall_ns
        self.is_begun = True
        while start < end and run.read(data, start, end):
            self._publish(run)
            start = run.end

    def _publish(self, run: Run) -> None:
        service = self._service
        data = service.arena.data
        route = service.router.route(run.subject(data))
        if route is None:
            raise BadSubject("a staged message was not checked")
        start = run.start
        if self.known > 0:
            # Where one is out that was kept, so is everything before it.
            if not route.is_journaled:
                return
            skipped = min(self.known, run.count)
            self.known -= skipped
            for _ in range(skipped):
                start += u32_at(data, start)
            if start == run.end:
                return
            run.read(data, start, run.end)
        run.stamp(data, service.stamp)
        service.total.record(run.count, run.end - start, service.now_ns)
        journal = service.router.journal
        if route.is_journaled and journal is not None:
            journal.take(start, run.end, run.count)
        receivers = route.deliver_to_each(start, run.end, None, False)
        service.deliveries += receivers * run.count
        service.deliveries += route.deliver_in_turn(start, run.end, None, False)
        if route.is_far and service.beyond is not None:
            service.beyond.spread(route, start, run.end, run.count)


def checked_rows(frames: bytes, body_limit_bytes: int, rights: Rights | None = None) -> int:
    """How many messages these are; each is one that may be released by whoever has these rights.

    Raises:
        BadFrame: they are no whole messages, or have flags that a staged one cannot have.
        BadSubject: a subject or reply is not legal.
        Reserved: a subject or reply belongs to the system.
        NotAllowed: a subject or reply is none that may be published to.
    """
    run = Run(body_limit_bytes)
    rows = at = 0
    end = len(frames)
    while at < end:
        if not run.read(frames, at, end):
            raise BadFrame(f"{end - at} bytes after {rows} messages are no whole one")
        if run.kind != _MESSAGE or run.flags & ~_BARE:
            raise BadFrame(f"kind {run.kind} with flags {run.flags} cannot be staged")
        _check_subject(run.subject(frames), _OPEN, rights)
        if run.has_reply:
            _check_replies(run, frames, rights)
        rows += run.count
        at = run.end
    return rows


def _check_replies(run: Run, frames: bytes, rights: Rights | None) -> None:
    at = run.start
    for _ in range(run.count):
        names = at + _HEADER + run.subject_length
        reply = cut(frames, names, names + frames[at + 7])
        if reply:
            _check_subject(reply, (), rights)
        at += u32_at(frames, at)


def _check_subject(name: bytes, allowed: tuple[bytes, ...], rights: Rights | None) -> None:
    if not is_subject(name):
        raise BadSubject(f"{name.decode(errors='replace')!r} is not a legal subject")
    if is_reserved(name) and not name.startswith(allowed):
        raise Reserved(f"subject {name.decode()!r} belongs to the system")
    if rights is not None and not rights.allows(_MAY_PUBLISH, name):
        raise may_not("publish to", name)
