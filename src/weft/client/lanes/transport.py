"""Transport of a lane: frames over a socket between two clients, optionally encrypted."""

from typing import Protocol

from weft.client.connection.transport import SocketTransport
from weft.client.lanes.encryption import Seal, Unseal
from weft.errors import FrameTooBig, WeftError
from weft.wire.byteops import u32_at
from weft.wire.frames import HEADER_BYTES, NAME_MAX_BYTES, Decoder
from weft.wire.lane_messages import GREETING_BODY_BYTES

_GREETING_MAX = HEADER_BYTES + 2 * NAME_MAX_BYTES + GREETING_BODY_BYTES


class LaneTransportOwner(Protocol):
    """Interface of the transport's owner."""

    def took(self, run: list[bytes]) -> None:
        """Take whole frames with the same kind, flags and subject."""

    def read_all(self) -> None:
        """Continue after all frames of one read were processed."""

    def overstepped(self) -> None:
        """Handle a violation by the peer, for which the transport is closed."""

    def broke(self, reason: str) -> None:
        """Handle the end of the transport."""


class LaneTransport:
    """Transport of a lane; until begin() it accepts only small frames, one at a time."""

    def __init__(self, speaker: LaneTransportOwner) -> None:
        self.speaker = speaker
        self.line: SocketTransport | None = None
        # Received messages must wait for the gateway: reading more is of no use.
        self.is_early = False
        self.is_begun = False
        self.received_bytes = 0
        self._first = bytearray()
        self._decoder = Decoder(0)
        self._seal: Seal | None = None
        self._unseal: Unseal | None = None
        self._fault = ""

    def begin(self, body_limit_bytes: int, keys: tuple[bytes, bytes] | None) -> None:
        """Accept messages after the handshake; keys encrypt (the first) and decrypt records."""
        self._decoder = Decoder(body_limit_bytes)
        if keys is not None:
            self._seal, self._unseal = Seal(keys[0]), Unseal(keys[1])
        self.is_begun = True

    @property
    def is_sealed(self) -> bool:
        """Whether the content is encrypted."""
        return self._seal is not None

    @property
    def unsent_bytes(self) -> int:
        """Bytes that the socket has not accepted."""
        return 0 if self.line is None else self.line.unsent_bytes

    def write(self, data: bytes) -> None:
        """Send bytes; ignored after the end."""
        if self.line is not None:
            self.line.write(data if self._seal is None else self._seal.seal(data))

    def rest(self, is_wanted: bool) -> None:
        """Pause or resume reading."""
        if self.line is not None:
            self.line.rest(is_wanted)

    def close(self, reason: str = "closed by this client") -> None:
        """Close the connection now."""
        self._fault = self._fault or reason
        if self.line is not None:
            self.line.abort()

    def received(self, line: SocketTransport, data: memoryview) -> None:  # noqa: ARG002  # there is one
        """Take received bytes."""
        self.received_bytes += len(data)
        try:
            if self.is_begun:
                self._deal(data)
            else:
                self._greeted(data)
        except WeftError as error:
            self.speaker.overstepped()
            self.close(str(error))
        else:
            self.speaker.read_all()

    def writable(self, line: SocketTransport) -> None:
        """Do nothing: the data in flight is bounded by the window."""

    def ended(self, line: SocketTransport, error: Exception | None) -> None:  # noqa: ARG002  # there is one
        """Handle the end of the connection."""
        self.line = None
        self.speaker.broke(self._fault or (str(error) if error is not None else "connection ended"))

    def _deal(self, data: bytes | memoryview) -> None:
        self._decoder.feed(data if self._unseal is None else self._unseal.open(data))
        # Frames of a read that follow a close arrive by other paths.
        while self.line is not None and not self._fault and (run := self._decoder.next_run()):
            self.speaker.took(run)

    def _greeted(self, data: memoryview) -> None:
        """Read frame by frame: the last handshake frame determines how to read the rest."""
        first = self._first
        first += data
        # After a close the remaining bytes are ignored.
        while not (self.is_begun or self._fault) and len(first) >= 4:
            size = u32_at(first, 0)
            if not HEADER_BYTES <= size <= _GREETING_MAX:
                raise FrameTooBig(f"a first frame of {size} bytes on a lane")
            if len(first) < size:
                return
            frame = bytes(first[:size])
            del first[:size]
            self.speaker.took([frame])
        if self.is_begun and first:
            rest = bytes(first)
            first.clear()
            self._deal(rest)
