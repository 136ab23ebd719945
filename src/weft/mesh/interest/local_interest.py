"""Local interest: the patterns that this gateway advertises, reduced above a limit.

Above the limit, patterns without a group are advertised by their first elements, or if those are
too many as one that matches everything: other gateways then send a superset, which the local router
filters. Coarse patterns do not attract requests: responders are advertised only as group members,
or not at all. Group members are always exact, because a group message must not reach a gateway
without a member. Group members above the limit are queued until there is room.
"""

from collections import Counter
from collections.abc import Iterable

from weft.mesh.interest.interest_set import NO_CHANGE, InterestChange, WantedSet
from weft.mesh.protocol import InterestEntry, wanted_bytes
from weft.wire.subjects import CHANNEL, HOT_ROUTES, PIPELINE

EXACT_MAX = 50_000
# Less in total than a gateway accepts; see mesh/interest/interest_set.py.
PLAIN_MAX_BYTES = 4 << 20
GROUPED_MAX = 40_000
GROUPED_MAX_BYTES = 3 << 20

# Level of detail: exact, by first elements, or one pattern for everything.
_EXACT, _FIRST, _ALL = range(3)
_EVERYTHING = b">"
# A wildcard in the first place does not match channel or pipeline subjects.
_CHANNELS = InterestEntry(CHANNEL + b">", b"", True)
_PIPELINES = InterestEntry(PIPELINE + b">", b"", True)
# Pattern that every gateway subscribes to, independent of its clients.
FOR_ITSELF = InterestEntry(HOT_ROUTES, b"", True)


class OwnInterest:
    """Patterns of the local connections, and the advertised interest set."""

    def __init__(self, always: Iterable[bytes] = (), exact_max: int = EXACT_MAX) -> None:
        self.told = WantedSet()
        # Patterns of the gateway itself, independent of its clients.
        self._always = [InterestEntry(pattern, b"", True) for pattern in always]
        self._exact_max = exact_max
        self._detail = _EXACT
        self._plain: set[InterestEntry] = set()
        self._plain_bytes = 0
        # Number of patterns behind each coarse one.
        self._coarse: Counter[InterestEntry] = Counter()
        self._coarse_bytes = 0
        self._grouped: set[InterestEntry] = set()
        self._grouped_bytes = 0
        # Group members that wait for room, in order.
        self._untold: dict[InterestEntry, None] = {}

    @property
    def is_coarse(self) -> bool:
        """Whether the advertised interest is a superset."""
        return self._detail != _EXACT

    @property
    def untold(self) -> int:
        """Number of group members that are not advertised."""
        return len(self._untold)

    def change(self, changes: Iterable[tuple[InterestEntry, bool]]) -> InterestChange:
        """Apply added (True) and removed patterns; return the change to advertise."""
        # The last change of each entry counts.
        told: dict[InterestEntry, bool] = {}
        for wanted, is_added in changes:
            if wanted.group:
                self._change_grouped(wanted, is_added, told)
            else:
                self._change_plain(wanted, is_added, told)
        self._tell_waiting(told)
        for wanted in self._always:
            told[wanted] = self._is_told(wanted)
        change = self.told.apply(
            [wanted for wanted, is_added in told.items() if is_added],
            [wanted for wanted, is_added in told.items() if not is_added],
        )
        detail = self._due_detail()
        if detail != self._detail:
            self._detail = detail
            change = _together(change, self.told.become(self._all_told()))
        if change != NO_CHANGE:
            self.told.version += 1
        return change

    def _change_plain(
        self, wanted: InterestEntry, is_added: bool, told: dict[InterestEntry, bool]
    ) -> None:
        if (wanted in self._plain) == is_added:
            return
        coarse = coarsened(wanted)
        if is_added:
            self._plain.add(wanted)
            self._plain_bytes += wanted_bytes(wanted)
            self._coarse_bytes += 0 if coarse in self._coarse else wanted_bytes(coarse)
            self._coarse[coarse] += 1
        else:
            self._plain.discard(wanted)
            self._plain_bytes -= wanted_bytes(wanted)
            self._coarse[coarse] -= 1
            if not self._coarse[coarse]:
                del self._coarse[coarse]
                self._coarse_bytes -= wanted_bytes(coarse)
        if self._detail == _EXACT:
            told[wanted] = is_added
        elif self._detail == _FIRST:
            told[coarse] = coarse in self._coarse

    def _change_grouped(
        self, wanted: InterestEntry, is_added: bool, told: dict[InterestEntry, bool]
    ) -> None:
        if is_added:
            self._untold[wanted] = None
        elif wanted in self._grouped:
            self._grouped.discard(wanted)
            self._grouped_bytes -= wanted_bytes(wanted)
            told[wanted] = False
        else:
            self._untold.pop(wanted, None)

    def _tell_waiting(self, told: dict[InterestEntry, bool]) -> None:
        """Advertise queued group members while there is room."""
        while self._untold:
            wanted = next(iter(self._untold))
            size = self._grouped_bytes + wanted_bytes(wanted)
            if len(self._grouped) >= GROUPED_MAX or size > GROUPED_MAX_BYTES:
                return
            del self._untold[wanted]
            if wanted not in self._grouped:
                self._grouped.add(wanted)
                self._grouped_bytes = size
                told[wanted] = True

    def _is_told(self, own: InterestEntry) -> bool:
        """Return whether an own pattern is advertised: not if a client's entry covers it."""
        return self.is_coarse or own._replace(is_listener=False) not in self._plain

    def _due_detail(self) -> int:
        """Return the due level of detail; it becomes finer only at half the limit."""
        return max(self._detail_for(1), min(self._detail, self._detail_for(2)))

    def _detail_for(self, share: int) -> int:
        limit, limit_bytes = self._exact_max // share, PLAIN_MAX_BYTES // share
        if len(self._plain) <= limit and self._plain_bytes <= limit_bytes:
            return _EXACT
        if len(self._coarse) <= limit and self._coarse_bytes <= limit_bytes:
            return _FIRST
        return _ALL

    def _all_told(self) -> set[InterestEntry]:
        """Return all entries to advertise."""
        told = self._grouped | {each for each in self._always if self._is_told(each)}
        if self._detail == _EXACT:
            return told | self._plain
        if self._detail == _FIRST:
            return told | set(self._coarse)
        return told | {InterestEntry(_EVERYTHING, b"", True), _CHANNELS, _PIPELINES}


def coarsened(wanted: InterestEntry) -> InterestEntry:
    """Return the coarse entry that covers an entry."""
    if wanted.pattern.startswith(PIPELINE):
        return _PIPELINES
    first, dot, _ = wanted.pattern.partition(b".")
    if first in (b"*", _EVERYTHING):
        return InterestEntry(_EVERYTHING, b"", True)
    return InterestEntry(first + b".>" if dot else first, b"", True)


def _together(first: InterestChange, second: InterestChange) -> InterestChange:
    """Return two consecutive changes as one."""
    added = (set(first.added) - set(second.removed)) | set(second.added) - set(first.removed)
    removed = (set(first.removed) - set(second.added)) | set(second.removed) - set(first.added)
    return InterestChange(tuple(sorted(added)), tuple(sorted(removed)))
