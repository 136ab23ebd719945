"""The place in a service of a peer that speaks something else than frames.

What it says is put into frames by its dialect and dealt with like those of anybody else, so rights,
limits and counts are the same whichever door was taken. What it is owed is handed to its speaker
as whole frames, whenever that has room; until then it waits in the outbox, within its bounds.
"""

import logging
from typing import Protocol

from weft.broker.disconnect import leave
from weft.broker.replies import end_slow_reader
from weft.broker.service import Peer
from weft.errors import InternalError, WeftError
from weft.transports.loop.turn import Turn
from weft.transports.peer_replay import Recalls
from weft.wire.nonces import Nonces
from weft.wire.since import Since

_log = logging.getLogger(__name__)

# So much is handed over at once, about.
PIECE_BYTES = 64 << 10


class Speaker(Protocol):
    """Whoever tells a peer, in its dialect, what frames say."""

    @property
    def has_room(self) -> bool:
        """Say if more can be told now; if not, it calls pour() when it can."""

    def tell(self, frames: bytes) -> None:
        """Tell the peer of whole frames; nothing may be said for it meanwhile."""

    def rest(self) -> None:
        """Take nothing in: the journal must be written first, or others must read."""

    def go_on(self) -> None:
        """Take in again."""

    def over(self, error: WeftError | None) -> None:
        """The peer has left the service, and was told everything unless it did not listen."""


class Nobody:
    """Whoever speaks with a peer that has left."""

    has_room = False

    def tell(self, frames: bytes) -> None:
        """Nothing is heard."""

    def rest(self) -> None:
        """It does."""

    def go_on(self) -> None:
        """Never."""

    def over(self, error: WeftError | None) -> None:
        """It is."""


_NOBODY = Nobody()


class Seat:
    """One peer, as its speaker uses it."""

    __slots__ = ("_is_gone", "_is_resting", "_nonces", "_recalls", "_speaker", "_turn", "peer")

    def __init__(self, turn: Turn, speaker: Speaker, token: int, nonces: Nonces) -> None:
        self._turn = turn
        self._nonces = nonces
        self._speaker: Speaker = speaker
        self._is_gone = False
        self._is_resting = False
        self._recalls: Recalls | None = None
        self.peer: Peer = turn.service.join(token, self)

    def say(self, frames: bytes) -> None:
        """Say whole frames for the peer."""
        peer = self.peer
        if self._is_gone:
            return
        self._turn.hear(peer, frames)
        journal = self._turn.service.router.journal
        if (peer.is_held or peer.is_paused) and not self._is_resting:
            self._is_resting = True
            self._speaker.rest()
            if peer.is_held and journal is not None:
                journal.hold(self)

    def recall(self, wish: bytes, since: Since) -> None:
        """Say a SUBSCRIBE whose messages begin in the past, as soon as that was told.

        Raises:
            BadOption: the beginning is none.
            TooMany: of this peer are in the past already.
        """
        if self._recalls is None:
            self._recalls = Recalls(self.peer.inbox, self._nonces)
        self._recalls.begin(wish, since)
        self._say_words()

    def heard(self) -> None:
        """The peer gave a sign of life."""
        self.peer.heard_ns = self._turn.service.now_ns

    def pour(self) -> None:
        """Hand over what the peer is owed, as far as there is room."""
        service = self._turn.service
        outbox = self.peer.outbox
        try:
            while not self._is_gone and outbox.is_behind() and self._speaker.has_room:
                frames = outbox.draw(PIECE_BYTES, service.now_ns)
                if self._recalls is not None:
                    frames = self._recalled(self._recalls, frames)
                service.bytes_out += len(frames)
                if frames:
                    self._speaker.tell(frames)
        except Exception:
            # A fault of ours, in the middle of a turn that is everybody's.
            _log.exception("a peer is given up")
            self.end(InternalError("the gateway failed"))
        if self.peer.is_over and not outbox.owed():
            self.finish()

    def end(self, error: WeftError | None = None) -> None:
        """The peer leaves: its conversation is over, or was lost."""
        if not self._is_gone:
            self.peer.end(error)
            self.abort()

    def _recalled(self, recalls: Recalls, frames: bytes) -> bytes:
        """What of these frames, and of the past that they bring, is to be told now."""
        told = recalls.pass_on(frames)
        if recalls.words:
            # Not now: this may be a flush. Once it was told, so that the reader sets the pace.
            self._turn.later(self._say_words)
        return told

    def _say_words(self) -> None:
        """Ask for more of the past."""
        recalls = self._recalls
        if recalls is not None:
            words, recalls.words = recalls.words, []
            for frames in words:
                self.say(frames)

    # What is asked of a door.

    def fall_behind(self) -> None:
        """Hand over what there is; a reader that is cut is told so at last."""
        peer = self.peer
        if peer.outbox.is_cut and not peer.is_over and not end_slow_reader(peer):
            self.abort()
        else:
            self.pour()

    def press(self) -> None:
        """Hand over more if there is room."""
        self.pour()

    def finish(self) -> None:
        """The peer is over: leave once it was told everything."""
        if not self.peer.outbox.owed():
            self.abort()

    def abort(self) -> None:
        """Leave at once."""
        if self._is_gone:
            return
        self._is_gone = True
        leave(self.peer)
        self._turn.left()
        # The two know each other: the collector would come late for them.
        speaker, self._speaker = self._speaker, _NOBODY
        speaker.over(self.peer.error)

    def give_up(self, error: WeftError) -> None:
        """Leave at once because of an error of ours."""
        self.end(error)

    def resume(self) -> None:
        """What it was held for is over: the peer may go on."""
        self.peer.is_held = self.peer.is_paused = False
        self._is_resting = False
        self.heard()
        if not self._is_gone:
            self._speaker.go_on()
