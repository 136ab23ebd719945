"""Publish staged messages, all at once and without a connection.

A two-step writer first stages rows, which are not delivered, and then commits them. They are
published in order under a publisher number of their own: after an interruption, the journal's
messages with that number show how many were published.
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
    """Publisher of the staged messages of one commit.

    The first `known` journaled ones were published before an interruption, and are skipped.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self.known = 0
        self.is_begun = False
        self.publisher = service.next_number() & 0xFFFFFFFF

    def publish(self, start: int, end: int) -> None:
        """Publish validated messages that lie in the arena."""
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
            # If a journaled message was published, so were all before it.
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
    """Return the number of messages; each must be one that these permissions may publish.

    Raises:
        BadFrame: incomplete frame, other kind, or flags that a staged message cannot have.
        BadSubject: invalid subject or reply.
        Reserved: reserved subject or reply.
        NotAllowed: no permission to publish to a subject or reply.
    """
    run = Run(body_limit_bytes)
    rows = at = 0
    end = len(frames)
    while at < end:
        if not run.read(frames, at, end):
            raise BadFrame(f"{end - at} bytes after {rows} messages are not a whole frame")
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
