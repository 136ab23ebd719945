"""Hand published messages to the journal, and acknowledge them once they are durable."""

from weft.broker.replies import error_frame, put_ok
from weft.broker.service import Peer, Service
from weft.errors import JournalFailed
from weft.wire.frames import HEADER_BYTES, Flag, Kind

_REFUSED = (int(Kind.MESSAGE), int(Flag.ANSWER))


def keep(peer: Peer, start: int, end: int, count: int) -> None:
    """Append N frames of the arena to the journal; hold their publisher if it is full."""
    journal = peer.service.router.journal
    if journal is not None:
        journal.take(start, end, count)
        if journal.is_full():
            peer.is_held = True


def why_not_kept(service: Service) -> JournalFailed | None:
    """Return the error if the journal cannot be written now, else None."""
    journal = service.router.journal
    return journal.failure() if journal is not None and journal.is_failing else None


def acknowledge_when_safe(peer: Peer, at: int) -> None:
    """Send the OK of the message that was appended last once it is durable."""
    journal = peer.service.router.journal
    if journal is not None:
        put_ok(journal.ask(peer), peer.service.arena.data, at)


def journal_failed(service: Service, problem: str) -> None:
    """Send an error to all publishers that await an OK: their messages may be lost."""
    journal = service.router.journal
    if journal is None:
        return
    asked = journal.failed(problem)
    error = JournalFailed(
        f"the journal cannot be written: {problem}; the message was delivered, and may be lost"
    )
    for each in asked:
        if not isinstance(each.peer, Peer):
            # Not a connection: the owner of the journal notifies it.
            continue
        peer, oks = each.peer, each.oks.take()
        at = 0
        while at < len(oks):
            subject_end = at + HEADER_BYTES + oks[at + 6]
            subject = oks[at + HEADER_BYTES : subject_end]
            reply = oks[subject_end : subject_end + oks[at + 7]]
            service.count_refused(type(error).__name__)
            peer.owe(error_frame(peer, subject, reply, _REFUSED, error))
            at = subject_end + oks[at + 7]
