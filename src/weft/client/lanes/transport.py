"""A socket between two clients: frames both ways, sealed or not, and how it ended."""

from typing import Protocol

from weft.client.connection.transport import Line
from weft.client.lanes.encryption import Seal, Unseal
from weft.errors import FrameTooBig, WeftError
from weft.wire.byteops import u32_at
from weft.wire.frames import HEADER_BYTES, NAME_MAX_BYTES, Decoder
from weft.wire.lane_messages import GREETING_BODY_BYTES

_GREETING_MAX = HEADER_BYTES + 2 * NAME_MAX_BYTES + GREETING_BODY_BYTES


class Speaker(Protocol):
    """Whoever speaks over a wire."""

    def took(self, run: list[bytes]) -> None:
        """Whole frames came that share kind, flags and subject."""

    def read_all(self) -> None:
        """Everything that one read brought was dealt with."""

    def overstepped(self) -> None:
        """What came cannot be, or may not; the wire is closed for it."""

    def broke(self, reason: str) -> None:
        """Nothing more comes or goes."""


class Wire:
    """One connection; until begin() only small frames are taken, one after the other."""

    def __init__(self, speaker: Speaker) -> None:
        self.speaker = speaker
        self.line: Line | None = None
        # What came must wait for the gateway: there is no need to read on.
        self.is_early = False
        self.is_begun = False
        self.received_bytes = 0
        self._first = bytearray()
        self._decoder = Decoder(0)
        self._seal: Seal | None = None
        self._unseal: Unseal | None = None
        self._fault = ""

    def begin(self, body_limit_bytes: int, keys: tuple[bytes, bytes] | None) -> None:
        """Both are proven: take messages, in records if there are keys, ours first."""
        self._decoder = Decoder(body_limit_bytes)
        if keys is not None:
            self._seal, self._unseal = Seal(keys[0]), Unseal(keys[1])
        self.is_begun = True

    @property
    def is_sealed(self) -> bool:
        """Say if nobody else can read what goes over it."""
        return self._seal is not None

    @property
    def unsent_bytes(self) -> int:
        """What the other end has not let the socket take."""
        return 0 if self.line is None else self.line.unsent_bytes

    def write(self, data: bytes) -> None:
        """Send bytes; after the end they go nowhere."""
        if self.line is not None:
            self.line.write(data if self._seal is None else self._seal.seal(data))

    def rest(self, is_wanted: bool) -> None:
        """Stop reading, or read again."""
        if self.line is not None:
            self.line.rest(is_wanted)

    def close(self, reason: str = "it was closed here") -> None:
        """End it, now."""
        self._fault = self._fault or reason
        if self.line is not None:
            self.line.abort()

    def received(self, line: Line, data: memoryview) -> None:  # noqa: ARG002  # there is one
        """Bytes arrived."""
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

    def writable(self, line: Line) -> None:
        """The socket takes bytes again; what is under way is bounded elsewhere."""

    def ended(self, line: Line, error: Exception | None) -> None:  # noqa: ARG002  # there is one
        """Nothing more arrives or leaves."""
        self.line = None
        self.speaker.broke(self._fault or (str(error) if error is not None else "it was ended"))

    def _deal(self, data: bytes | memoryview) -> None:
        self._decoder.feed(data if self._unseal is None else self._unseal.open(data))
        # What a wire that was closed still has of one read comes by other ways.
        while self.line is not None and not self._fault and (run := self._decoder.next_run()):
            self.speaker.took(run)

    def _greeted(self, data: memoryview) -> None:
        """Take one frame after the other: the last of them says how to read what follows."""
        first = self._first
        first += data
        # Once it is closed nothing more of it counts.
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
