"""From a received frame to the subscriptions that want it, worked out once a subject.

Plain subscriptions all get a message; of those of one group, and of those that could answer a
request, one does, each in turn. Messages that were received over an earlier line are dropped: a
gateway that was cut off from others gets later what a client already had elsewhere. Those of a
group are not: each goes to one gateway, and so comes once, but perhaps late.
"""

from collections.abc import Callable

from weft.client.requests.open_requests import OpenRequests
from weft.client.status import Statistics
from weft.client.subscriptions.registry import Interests, Listening
from weft.errors import BadFrame
from weft.wire.byteops import cut, u32_at, u64_at
from weft.wire.frames import HEADER_BYTES, Flag
from weft.wire.subjects import is_subject

CACHED_SUBJECTS_MAX = 8192
# As many gateways as a mesh may have.
ORIGINS_MAX = 4096

_ORIGIN = 8
_SEQUENCE = 16
# Messages of a lane are numbered by their publisher, from here on.
_DIRECT = 1 << 63
_SUBJECT = HEADER_BYTES
_REQUEST = int(Flag.REQUEST)

# Frames that came one after the other, of one subject; whoever gets them changes nothing.
Put = Callable[[list[bytes]], None]


class Turns:
    """Several of whom one gets each frame."""

    def __init__(self, puts: list[Put]) -> None:
        self._puts = puts
        self._next = 0

    def put(self, frames: list[bytes]) -> None:
        """Give each frame to whoever's turn it is."""
        turns = len(self._puts)
        for first in range(min(turns, len(frames))):
            self._puts[(self._next + first) % turns](frames[first::turns])
        self._next = (self._next + len(frames)) % turns


class Route:
    """Who gets the messages of one subject, and who its requests."""

    def __init__(self, messages: list[Put], requests: list[Put], *, is_shared: bool) -> None:
        self.messages = messages
        self.requests = requests
        # A group's: what comes was given to nobody else.
        self.is_shared = is_shared


class Dispatch:
    """The subscriptions of one connection, ready for frames."""

    def __init__(self, interests: Interests, statistics: Statistics) -> None:
        self._interests = interests
        self._statistics = statistics
        self._routes: dict[bytes, Route] = {}
        self.requests = OpenRequests()
        # By origin: the last sequence that was received, and the last over an earlier line.
        self._received: dict[int, int] = {}
        self._before: dict[int, int] = {}
        # The same of the origin that the last message came from.
        self._origin = 0
        self._last = 0
        self._floor = 0

    def resume(self) -> None:
        """Another line begins: drop what was received before, if it comes again."""
        self._turn_to(0)
        self._before = dict(self._received)

    def forget(self) -> None:
        """A subscription came or went: work every route out anew."""
        self._routes.clear()

    def deliver(self, frames: list[bytes]) -> None:
        """Hand MESSAGE frames that share flags and subject to whoever wants them.

        Raises:
            BadFrame: what they were sent to is not a subject.
        """
        first = frames[0]
        subject = cut(first, _SUBJECT, _SUBJECT + first[6])
        route = self._routes.get(subject)
        if route is None:
            route = self._find(subject)
        if first[5] & _REQUEST:
            self.requests.add(frames)
            for put in route.requests:
                put(frames)
        else:
            if not route.is_shared:
                frames = self._unreceived(frames)
                if not frames:
                    return
            for put in route.messages:
                put(frames)

    def _unreceived(self, frames: list[bytes]) -> list[bytes]:
        """Return those that were not received over an earlier line."""
        count = 0
        for each in frames:
            frame = each
            sequence = u64_at(frame, _SEQUENCE)
            if sequence == 0 or sequence >= _DIRECT:
                continue
            origin = u32_at(frame, _ORIGIN)
            if origin != self._origin:
                self._turn_to(origin)
            if sequence <= self._floor:
                count += 1
            elif sequence > self._last:
                self._last = sequence
        if count == 0:
            return frames
        self._statistics.repeated += count
        return [frame for frame in frames if not self._is_repeated(frame)]

    def _turn_to(self, origin: int) -> None:
        """Look at the sequences of another origin."""
        received = self._received
        if self._origin:
            # The origin that was heard of longest ago is forgotten first.
            received.pop(self._origin, None)
            received[self._origin] = self._last
            if len(received) > ORIGINS_MAX:
                del received[next(iter(received))]
        self._origin = origin
        self._floor = self._before.get(origin, 0)
        self._last = received.get(origin, self._floor)

    def _is_repeated(self, frame: bytes) -> bool:
        floor = self._before.get(u32_at(frame, _ORIGIN), 0)
        return 0 < u64_at(frame, _SEQUENCE) <= floor

    def _find(self, subject: bytes) -> Route:
        if not is_subject(subject):
            raise BadFrame(f"a message to {len(subject)} bytes that are not a subject")
        found = self._interests.find(subject)
        confirmed = [each for each in found if each.confirmed.is_set()]
        responders = [each for each in found if not each.wish.listen_only]
        is_shared = bool(found) and bool(found[0].group)
        route = Route(
            # What only one gets is not given to anybody else.
            self._one_of(found) if is_shared else self._all_of(confirmed),
            self._one_of(responders),
            is_shared=is_shared,
        )
        # Forgetting all is crude, but a program that hears more subjects than this repeats few.
        if len(self._routes) >= CACHED_SUBJECTS_MAX:
            self._routes.clear()
        self._routes[subject] = route
        return route

    def _all_of(self, found: list[Listening]) -> list[Put]:
        return [each.sink.put for each in found] or [self._unwanted]

    def _one_of(self, found: list[Listening]) -> list[Put]:
        puts = self._all_of(found)
        return puts if len(puts) == 1 else [Turns(puts).put]

    def _unwanted(self, frames: list[bytes]) -> None:
        self._statistics.unwanted += len(frames)
