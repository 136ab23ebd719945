"""What all clients published, heard and asked, as the checker of histories wants it."""

from bisect import bisect_left
from collections import Counter
from time import monotonic_ns

from weft.simulation.history import (
    DeliveryRecord,
    GapRecord,
    History,
    Published,
    RequestRecord,
    SubscriberRecord,
)

# From one gateway, by its place in the mesh, to another.
Pair = tuple[int, int]
# Instead of a sequence: the gateway did not take the message.
REFUSED = -1


class Life:
    """One connection of a publisher: what it published, and what it knows of that.

    A sequence of 0: nobody knows if the message ever entered.
    """

    def __init__(self, name: str, place: int, origin: int) -> None:
        self.name = name
        self.place = place
        self.origin = origin
        self.subjects: list[str] = []
        self.times_ns: list[int] = []
        self.sequences: list[int] = []


class Book:
    """Everything that happened, in the order in which it was seen."""

    def __init__(self) -> None:
        self.lives: list[Life] = []
        self.sessions: list[SubscriberRecord] = []
        self.asked: list[RequestRecord] = []
        # When probes were published and heard, in order.
        self.probes: dict[Pair, tuple[list[int], list[int]]] = {}
        # Why connections ended, as the gateway said it.
        self.ends: Counter[str] = Counter()

    def begin(self, name: str, place: int, origin: int) -> int:
        """A publisher is connected; the number of this life of it."""
        self.lives.append(Life(f"{name}.{len(self.lives)}", place, origin))
        return len(self.lives) - 1

    def publish(self, number: int, subject: str) -> int:
        """A message is about to be published; its counter."""
        life = self.lives[number]
        life.subjects.append(subject)
        life.times_ns.append(monotonic_ns())
        life.sequences.append(0)
        return len(life.subjects) - 1

    def hear(self, number: int, counter: int, origin: int, sequence: int) -> DeliveryRecord:
        """A message was heard; what it was if nobody can have said it is told by its counter."""
        name = f"nobody.{number}"
        if number < len(self.lives) and counter < len(self.lives[number].sequences):
            life = self.lives[number]
            life.sequences[counter] = sequence
            name = life.name
        # From 1 on: what comes before the first is 0 to the checker.
        return DeliveryRecord(name, counter + 1, origin, sequence, monotonic_ns())

    def probe(self, number: int, counter: int, place: int) -> None:
        """A probe arrived at a place."""
        life = self.lives[number]
        published, heard = self.probes.setdefault((life.place, place), ([], []))
        published.append(life.times_ns[counter])
        heard.append(monotonic_ns())

    def first_after(self, pair: Pair, time_ns: int) -> int:
        """When the first probe that was published after a time was heard; -1 if none was."""
        published, heard = self.probes.get(pair, ([], []))
        at = bisect_left(published, time_ns)
        return heard[at] if at < len(heard) else -1

    @property
    def unconfirmed(self) -> int:
        """How many messages may have entered, or not: their gateway was killed."""
        return sum(life.sequences.count(0) for life in self.lives)

    def history(self) -> History:
        """All of it, for the checker."""
        published = [
            Published(life.name, counter + 1, subject, life.origin, time_ns, sequence)
            for life in self.lives
            for counter, (subject, time_ns, sequence) in enumerate(
                zip(life.subjects, life.times_ns, life.sequences, strict=True)
            )
            if sequence != REFUSED
        ]
        # As they entered; what nobody knows of was the last of its publisher.
        published.sort(key=lambda each: (each.sequence == 0, each.sequence, each.time_ns))
        return History(published=published, sessions=self.sessions, asked=self.asked)


def gap(origin: int, count: int) -> GapRecord:
    """A loss that a subscriber was told of just now."""
    return GapRecord(origin, count, monotonic_ns())
