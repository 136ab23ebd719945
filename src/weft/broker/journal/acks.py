"""Published messages on their way into the journal, and what their publishers are told of it."""

from weft.broker.replies import error_frame, put_ok
from weft.broker.service import Peer, Service
from weft.errors import JournalFailed
from weft.wire.frames import HEADER_BYTES, Flag, Kind

_REFUSED = (int(Kind.MESSAGE), int(Flag.ANSWER))


def keep(peer: Peer, start: int, end: int, count: int) -> None:
    """Keep so many frames that lie in the arena; hold their publisher if it is too fast."""
    journal = peer.service.router.journal
    if journal is not None:
        journal.take(start, end, count)
        if journal.is_full():
            peer.is_held = True


def why_not_kept(service: Service) -> JournalFailed | None:
    """What keeps the journal from being written, if anything does."""
    journal = service.router.journal
    return journal.failure() if journal is not None and journal.is_failing else None


def acknowledge_when_safe(peer: Peer, at: int) -> None:
    """Answer the message at an offset of the arena, which was kept last, when it is safe."""
    journal = peer.service.router.journal
    if journal is not None:
        put_ok(journal.ask(peer), peer.service.arena.data, at)


def journal_failed(service: Service, problem: str) -> None:
    """The journal cannot be written: tell those who wait that their messages may be lost."""
    journal = service.router.journal
    if journal is None:
        return
    asked = journal.failed(problem)
    error = JournalFailed(
        f"the journal cannot be written: {problem}; the message was delivered, and may be lost"
    )
    for each in asked:
        if not isinstance(each.peer, Peer):
            # No connection: whoever runs the journal tells it.
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
