"""What was said and heard in a mesh: what a checker judges, whoever collected it.

Gateways go by their numbers, which no two lives of one share. Times are ns of one clock for all.
"""

import msgspec


class Published(msgspec.Struct, frozen=True):
    """A message that entered at a gateway; `counter` goes up by one for each of a publisher.

    `sequence` is its number at that gateway, 0 if it is not known. `reach` are the gateways that it
    was sent to, and which version of what each wants was known where it entered; None if that is
    not known.
    """

    publisher: str
    counter: int
    subject: str
    origin: int
    time_ns: int
    sequence: int = 0
    reach: dict[int, int] | None = None


class Heard(msgspec.Struct, frozen=True, tag=True):
    """A message that came to a subscriber."""

    publisher: str
    counter: int
    origin: int
    sequence: int
    time_ns: int


class Gap(msgspec.Struct, frozen=True, tag=True):
    """What a subscriber was told of: so many of a gateway are lost; 0: nobody knows how many."""

    origin: int
    count: int
    time_ns: int


class Session(msgspec.Struct):
    """One subscriber for as long as it was connected, and all that it heard, in order.

    `version` is of what its gateway wants: from it on the subscription is part of that. `ended_ns`
    is 0 if it stayed to the end.
    """

    subscriber: str
    gateway: int
    patterns: tuple[str, ...]
    group: str
    began_ns: int
    version: int = 0
    ended_ns: int = 0
    events: list[Heard | Gap] = []


class Asked(msgspec.Struct):
    """A request, and how often it was answered or refused; `is_given_up`: whoever asked left."""

    requester: str
    counter: int
    time_ns: int
    answers: int = 0
    refusals: int = 0
    is_given_up: bool = False

    @property
    def is_over(self) -> bool:
        """Say if nobody waits for an answer any more."""
        return self.answers > 0 or self.refusals > 0 or self.is_given_up


class Passage(msgspec.Struct, frozen=True):
    """A message on a link: from where, for whom, under which number, by which gateways so far.

    The last of the path is the one that it goes to. `is_again`: it was asked for again.
    """

    origin: int
    destination: int
    number: int
    path: tuple[int, ...]
    is_again: bool = False


class Round(msgspec.Struct):
    """A probe from everyone to everyone: when, how many should arrive, and when each did."""

    time_ns: int
    expected: int
    heard_ns: list[int] = []


class History(msgspec.Struct):
    """One run."""

    published: list[Published] = []
    sessions: list[Session] = []
    asked: list[Asked] = []
    passages: list[Passage] = []
    rounds: list[Round] = []
    # Which number a gateway had in its life before, by its number; 0: it was never there before.
    lives: dict[int, int] = {}
    # When the last fault was over, since when all gateways know the same (-1: they do not), and
    # how long it may take until they do and all probes arrive; 0: that is not judged.
    calm_ns: int = 0
    agreed_ns: int = 0
    patience_ns: int = 0
