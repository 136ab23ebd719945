"""Dispatch of received frames to subscriptions, with one cached route per subject.

Every plain subscription gets each message. Of the subscriptions of a group, and of the possible
responders of a request, one gets each message, in turn. Messages that were received over an earlier
connection are dropped as duplicates: a gateway that was partitioned from others gets late messages
that this client already had. Group messages are not deduplicated: each goes to one gateway only,
so it arrives once, but perhaps late.
"""

from collections.abc import Callable

from weft.client.requests.open_requests import OpenRequests
from weft.client.status import Statistics
from weft.client.subscriptions.registry import SubscriptionRegistry, SubscriptionState
from weft.errors import BadFrame
from weft.wire.byteops import cut, u32_at, u64_at
from weft.wire.frames import HEADER_BYTES, Flag
from weft.wire.subjects import is_subject

CACHED_SUBJECTS_MAX = 8192
# The maximum number of gateways in a mesh.
ORIGINS_MAX = 4096

_ORIGIN = 8
_SEQUENCE = 16
# Sequence numbers of lane messages are assigned by their publisher and start here.
_DIRECT = 1 << 63
_SUBJECT = HEADER_BYTES
_REQUEST = int(Flag.REQUEST)

# Takes consecutive frames of one subject; must not change the list.
Put = Callable[[list[bytes]], None]


class Turns:
    """Round-robin over several receivers: one of them gets each frame."""

    def __init__(self, puts: list[Put]) -> None:
        self._puts = puts
        self._next = 0

    def put(self, frames: list[bytes]) -> None:
        """Pass each frame to the next receiver in turn."""
        turns = len(self._puts)
        for first in range(min(turns, len(frames))):
            self._puts[(self._next + first) % turns](frames[first::turns])
        self._next = (self._next + len(frames)) % turns


class SubjectRoute:
    """Receivers of the messages and of the requests of one subject."""

    def __init__(self, messages: list[Put], requests: list[Put], *, is_shared: bool) -> None:
        self.messages = messages
        self.requests = requests
        # Route of a group: the messages reach no other connection, so they are never duplicates.
        self.is_shared = is_shared


class Dispatch:
    """Dispatch table of one connection."""

    def __init__(self, interests: SubscriptionRegistry, statistics: Statistics) -> None:
        self._interests = interests
        self._statistics = statistics
        self._routes: dict[bytes, SubjectRoute] = {}
        self.requests = OpenRequests()
        # By origin: the last sequence number received, and the last one over an earlier connection.
        self._received: dict[int, int] = {}
        self._before: dict[int, int] = {}
        # The same values for the origin of the last message.
        self._origin = 0
        self._last = 0
        self._floor = 0

    def resume(self) -> None:
        """Start a new connection: from now on drop messages that were received before."""
        self._turn_to(0)
        self._before = dict(self._received)

    def forget(self) -> None:
        """Clear the cached routes, after a subscription was added, removed or confirmed."""
        self._routes.clear()

    def deliver(self, frames: list[bytes]) -> None:
        """Pass MESSAGE frames with the same flags and subject to their subscriptions.

        Raises:
            BadFrame: Invalid subject.
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
        """Return the frames that were not received over an earlier connection."""
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
        """Make the sequence numbers of another origin the current ones."""
        received = self._received
        if self._origin:
            # The least recently seen origin is removed first.
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

    def _find(self, subject: bytes) -> SubjectRoute:
        if not is_subject(subject):
            raise BadFrame(f"message with an invalid subject of {len(subject)} bytes")
        found = self._interests.find(subject)
        confirmed = [each for each in found if each.confirmed.is_set()]
        responders = [each for each in found if not each.wish.listen_only]
        is_shared = bool(found) and bool(found[0].group)
        route = SubjectRoute(
            # Group messages reach this connection only, so they need no confirmed subscription.
            self._one_of(found) if is_shared else self._all_of(confirmed),
            self._one_of(responders),
            is_shared=is_shared,
        )
        # Clearing the whole cache is crude, but programs with more subjects rarely repeat them.
        if len(self._routes) >= CACHED_SUBJECTS_MAX:
            self._routes.clear()
        self._routes[subject] = route
        return route

    def _all_of(self, found: list[SubscriptionState]) -> list[Put]:
        return [each.sink.put for each in found] or [self._unwanted]

    def _one_of(self, found: list[SubscriptionState]) -> list[Put]:
        puts = self._all_of(found)
        return puts if len(puts) == 1 else [Turns(puts).put]

    def _unwanted(self, frames: list[bytes]) -> None:
        self._statistics.unwanted += len(frames)
