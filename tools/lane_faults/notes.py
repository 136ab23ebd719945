"""What a receiver writes down, line by line, and how that is read again.

Whoever is killed has written only so much: the last line counts only if it is whole.
"""

from collections.abc import Callable, Iterable
from time import monotonic_ns
from typing import NamedTuple

from weft.client.received import AsyncReceived
from weft.client.status import Gap

# Lanes number what goes by them from here on.
_BY_LANES = 1 << 63

Write = Callable[[str], object]


class Said(NamedTuple):
    """What a message says of itself: its number of all of its publisher's, and of its subject's."""

    publisher: int
    number: int
    subject: str
    place: int

    def body(self, padding: int) -> bytes:
        """It as the body of a message."""
        said = f"{self.publisher} {self.number} {self.subject} {self.place};"
        return said.encode() + bytes(padding)


class Heard(NamedTuple):
    """A message that came, and by which connection of its publisher."""

    said: Said
    connection: str
    is_direct: bool


class Missed(NamedTuple):
    """A loss that was announced; of 0 messages: nobody knows how many."""

    reason: str
    messages: int


class Session:
    """What one subscription heard, from when the gateway had confirmed it."""

    def __init__(self, receiver: str, subjects: frozenset[str], ready_ns: int) -> None:
        self.receiver = receiver
        self.subjects = subjects
        self.ready_ns = ready_ns
        # It lasted until everything was said, and had heard all that came for it.
        self.is_complete = False
        self.events: list[Heard | Missed] = []


class Noting:
    """Notes what one receiver hears."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def ready(self, subjects: Iterable[str]) -> None:
        """It was confirmed that it hears these from now on."""
        self._write(f"r {monotonic_ns()} {' '.join(subjects)}\n")

    def hear(self, message: AsyncReceived) -> None:
        """A message came."""
        said = message.payload.partition(b";")[0].decode()
        way = "l" if message.sequence >= _BY_LANES else "g"
        self._write(f"{way} {said} {message.origin}.{message.publisher}\n")

    def miss(self, gap: Gap) -> None:
        """A loss was announced."""
        self._write(f"m {gap.count or 0} {gap.reason}\n")

    def leave(self) -> None:
        """It hears nothing more, until it is confirmed again."""
        self._write("u\n")

    def complete(self) -> None:
        """Everything that came was heard."""
        self._write("c\n")


def read(receiver: str, text: str) -> list[Session]:
    """The sessions that a receiver wrote down."""
    sessions: list[Session] = []
    # What came before it was confirmed comes with it.
    early: list[Heard | Missed] = []
    events = early
    for line in text.splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        kind, *words = line.split()
        if kind == "r":
            sessions.append(Session(receiver, frozenset(words[1:]), int(words[0])))
            sessions[-1].events = events = early
            early = []
        elif kind == "u":
            events = early = []
        elif kind == "c":
            sessions[-1].is_complete = True
        elif kind == "m":
            events.append(Missed(words[1], int(words[0])))
        else:
            said = Said(int(words[0]), int(words[1]), words[2], int(words[3]))
            events.append(Heard(said, words[4], kind == "l"))
    return sessions
