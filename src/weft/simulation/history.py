"""History of a run: published and received messages, as input of the checker.

Gateways are identified by numbers that are unique to each incarnation. Times are ns of one common
clock.
"""

import msgspec


class Published(msgspec.Struct, frozen=True):
    """Message as published; `counter` increases by one for each message of a publisher.

    `sequence` is its number at the gateway, 0 if unknown. `reach` maps the gateways it was sent to
    to the versions of their interest known at the origin; None if unknown.
    """

    publisher: str
    counter: int
    subject: str
    origin: int
    time_ns: int
    sequence: int = 0
    reach: dict[int, int] | None = None


class DeliveryRecord(msgspec.Struct, frozen=True, tag=True):
    """Message as received by a subscriber."""

    publisher: str
    counter: int
    origin: int
    sequence: int
    time_ns: int


class GapRecord(msgspec.Struct, frozen=True, tag=True):
    """Gap reported to a subscriber: lost messages of a gateway; 0: number unknown."""

    origin: int
    count: int
    time_ns: int


class SubscriberRecord(msgspec.Struct):
    """Session of one subscriber with all received events, in order.

    The subscription is part of its gateway's interest from `version` on. `ended_ns` is 0 if it
    lasted to the end.
    """

    subscriber: str
    gateway: int
    patterns: tuple[str, ...]
    group: str
    began_ns: int
    version: int = 0
    ended_ns: int = 0
    events: list[DeliveryRecord | GapRecord] = []


class RequestRecord(msgspec.Struct):
    """Request with its answers and errors; `is_given_up`: the requester left."""

    requester: str
    counter: int
    time_ns: int
    answers: int = 0
    refusals: int = 0
    is_given_up: bool = False

    @property
    def is_over(self) -> bool:
        """Whether the request is answered, failed or abandoned."""
        return self.answers > 0 or self.refusals > 0 or self.is_given_up


class LinkRecord(msgspec.Struct, frozen=True):
    """Message on a link: origin, destination, number and path.

    The path ends with the receiving gateway. `is_again`: it is a retransmission.
    """

    origin: int
    destination: int
    number: int
    path: tuple[int, ...]
    is_again: bool = False


class Round(msgspec.Struct):
    """Probe from each gateway to all: time, expected deliveries, and time of each delivery."""

    time_ns: int
    expected: int
    heard_ns: list[int] = []


class History(msgspec.Struct):
    """History of one run."""

    published: list[Published] = []
    sessions: list[SubscriberRecord] = []
    asked: list[RequestRecord] = []
    passages: list[LinkRecord] = []
    rounds: list[Round] = []
    # Number of each gateway before its last restart; 0: none.
    lives: dict[int, int] = {}
    # End of the last fault, time since which all gateways know the same (-1: never), and time
    # allowed for convergence; 0: not checked.
    calm_ns: int = 0
    agreed_ns: int = 0
    patience_ns: int = 0
