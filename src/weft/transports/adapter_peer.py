"""Adapter peer: a peer of a service with a protocol other than frames.

Its adapter converts each message to frames, which are handled like those of any other peer: the
same permissions, limits and counters apply to every transport. Outbound frames are passed to the
adapter whole, as long as it has room; the rest waits in the peer's bounded outbox.
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

# Approximate size of the pieces that are passed to the adapter.
PIECE_BYTES = 64 << 10


class Adapter(Protocol):
    """Adapter: converts outbound frames to the protocol of one peer."""

    @property
    def has_room(self) -> bool:
        """Return whether the adapter accepts more; if not, it calls pour() once it does."""

    def tell(self, frames: bytes) -> None:
        """Send whole frames to the peer; the adapter must not call Seat.say() meanwhile."""

    def rest(self) -> None:
        """Pause input: for a journal write, or because subscribers are above their limits."""

    def go_on(self) -> None:
        """Resume input."""

    def over(self, error: WeftError | None) -> None:
        """Called once the peer has left the service; `error` is None after a graceful end."""


class Nobody:
    """Null adapter, in place of the adapter of a peer that has left."""

    has_room = False

    def tell(self, frames: bytes) -> None:
        """Discard the frames."""

    def rest(self) -> None:
        """Do nothing."""

    def go_on(self) -> None:
        """Do nothing."""

    def over(self, error: WeftError | None) -> None:
        """Do nothing."""


_NOBODY = Nobody()


class AdapterPeer:
    """One adapter peer: passes frames between the service and the adapter."""

    __slots__ = ("_is_gone", "_is_resting", "_nonces", "_recalls", "_speaker", "_turn", "peer")

    def __init__(self, turn: Turn, speaker: Adapter, token: int, nonces: Nonces) -> None:
        self._turn = turn
        self._nonces = nonces
        self._speaker: Adapter = speaker
        self._is_gone = False
        self._is_resting = False
        self._recalls: Recalls | None = None
        self.peer: Peer = turn.service.join(token, self)

    def say(self, frames: bytes) -> None:
        """Handle whole frames as if the peer had sent them."""
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
        """Replay history for a SUBSCRIBE, then handle it as if the peer had sent it.

        Raises:
            BadOption: invalid `since`, or a queue group.
            TooMany: RECALLS_MAX replays of this peer are running.
        """
        if self._recalls is None:
            self._recalls = Recalls(self.peer.inbox, self._nonces)
        self._recalls.begin(wish, since)
        self._say_words()

    def heard(self) -> None:
        """Record that the peer was active just now."""
        self.peer.heard_ns = self._turn.service.now_ns

    def pour(self) -> None:
        """Pass queued frames to the adapter while it has room."""
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
            # A bug in the gateway: it must not break the turn, which all peers share.
            _log.exception("disconnected a peer after an unexpected error")
            self.end(InternalError("the gateway failed"))
        if self.peer.is_over and not outbox.owed():
            self.finish()

    def end(self, error: WeftError | None = None) -> None:
        """Disconnect the peer; with an error, it was lost or refused."""
        if not self._is_gone:
            self.peer.end(error)
            self.abort()

    def _recalled(self, recalls: Recalls, frames: bytes) -> bytes:
        """Return the frames to send now; pages of history are replaced by their messages."""
        told = recalls.pass_on(frames)
        if recalls.words:
            # Not during a flush; and only after sending, so that the reader sets the pace.
            self._turn.later(self._say_words)
        return told

    def _say_words(self) -> None:
        """Send the pending history requests and SUBSCRIBEs of the replays."""
        recalls = self._recalls
        if recalls is not None:
            words, recalls.words = recalls.words, []
            for frames in words:
                self.say(frames)

    # Interface of a peer's connection, called by the turn.

    def fall_behind(self) -> None:
        """Pass on queued frames; a slow consumer that is disconnected gets a last ERROR."""
        peer = self.peer
        if peer.outbox.is_cut and not peer.is_over and not end_slow_reader(peer):
            self.abort()
        else:
            self.pour()

    def press(self) -> None:
        """Pass on more queued frames if the adapter has room."""
        self.pour()

    def finish(self) -> None:
        """Leave the service once the queue of an ended peer is empty."""
        if not self.peer.outbox.owed():
            self.abort()

    def abort(self) -> None:
        """Leave the service now and drop queued frames."""
        if self._is_gone:
            return
        self._is_gone = True
        leave(self.peer)
        self._turn.left()
        # A reference cycle: without this, both would live until the garbage collector runs.
        speaker, self._speaker = self._speaker, _NOBODY
        speaker.over(self.peer.error)

    def give_up(self, error: WeftError) -> None:
        """Disconnect at once because of an error in the gateway."""
        self.end(error)

    def resume(self) -> None:
        """Resume input: the reason for the pause is over."""
        self.peer.is_held = self.peer.is_paused = False
        self._is_resting = False
        self.heard()
        if not self._is_gone:
            self._speaker.go_on()
