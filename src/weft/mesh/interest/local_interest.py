"""What this gateway tells the others that it wants: as it is, or coarser where that is too much.

Above a limit, patterns without a group are told by their first elements only, and if those are too
many by one that asks for everything: the others then send more than is wanted, which the router
here leaves out, and never less. Requests are not drawn here by that: whoever would answer them is
told as a member of a group, or not at all. Members of groups are told as they are: of what is for
one of them, nothing may come where nobody is. Those beyond what others take wait for their turn.
"""

from collections import Counter
from collections.abc import Iterable

from weft.mesh.interest.interest_set import NO_CHANGE, Change, WantedSet
from weft.mesh.protocol import Wanted, wanted_bytes
from weft.wire.subjects import CHANNEL, HOT_ROUTES, PIPELINE

EXACT_MAX = 50_000
# Together less than others take of one gateway; see mesh/interest/interest_set.py.
PLAIN_MAX_BYTES = 4 << 20
GROUPED_MAX = 40_000
GROUPED_MAX_BYTES = 3 << 20

# How patterns are told: as they are, by their first elements, or all by one.
_EXACT, _FIRST, _ALL = range(3)
_EVERYTHING = b">"
# No wildcard in the first place stands for channels, or for what jobs say.
_CHANNELS = Wanted(CHANNEL + b">", b"", True)
_PIPELINES = Wanted(PIPELINE + b">", b"", True)
# What every gateway subscribes to at the others, whatever its clients do.
FOR_ITSELF = Wanted(HOT_ROUTES, b"", True)


class OwnInterest:
    """What connections here want, and what of it others are told."""

    def __init__(self, always: Iterable[bytes] = (), exact_max: int = EXACT_MAX) -> None:
        self.told = WantedSet()
        # What this gateway wants itself, whoever is connected.
        self._always = [Wanted(pattern, b"", True) for pattern in always]
        self._exact_max = exact_max
        self._detail = _EXACT
        self._plain: set[Wanted] = set()
        self._plain_bytes = 0
        # How many patterns each coarse one stands for.
        self._coarse: Counter[Wanted] = Counter()
        self._coarse_bytes = 0
        self._grouped: set[Wanted] = set()
        self._grouped_bytes = 0
        # Those that there is no room for, the first to be told first.
        self._untold: dict[Wanted, None] = {}

    @property
    def is_coarse(self) -> bool:
        """Say if more is told than is wanted."""
        return self._detail != _EXACT

    @property
    def untold(self) -> int:
        """How many members of groups nobody else knows of."""
        return len(self._untold)

    def change(self, changes: Iterable[tuple[Wanted, bool]]) -> Change:
        """Connections began to want, True, or ceased to; what others are to be told of it."""
        # The last word on each: what was taken back may be asked for again.
        told: dict[Wanted, bool] = {}
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

    def _change_plain(self, wanted: Wanted, is_added: bool, told: dict[Wanted, bool]) -> None:
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

    def _change_grouped(self, wanted: Wanted, is_added: bool, told: dict[Wanted, bool]) -> None:
        if is_added:
            self._untold[wanted] = None
        elif wanted in self._grouped:
            self._grouped.discard(wanted)
            self._grouped_bytes -= wanted_bytes(wanted)
            told[wanted] = False
        else:
            self._untold.pop(wanted, None)

    def _tell_waiting(self, told: dict[Wanted, bool]) -> None:
        """Tell of members of groups, as many as there is room for."""
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

    def _is_told(self, own: Wanted) -> bool:
        """Say if what this gateway wants is told: not if connections answer requests to it, too."""
        return self.is_coarse or own._replace(is_listener=False) not in self._plain

    def _due_detail(self) -> int:
        """How patterns are to be told now; it becomes finer only well below the limit."""
        return max(self._detail_for(1), min(self._detail, self._detail_for(2)))

    def _detail_for(self, share: int) -> int:
        limit, limit_bytes = self._exact_max // share, PLAIN_MAX_BYTES // share
        if len(self._plain) <= limit and self._plain_bytes <= limit_bytes:
            return _EXACT
        if len(self._coarse) <= limit and self._coarse_bytes <= limit_bytes:
            return _FIRST
        return _ALL

    def _all_told(self) -> set[Wanted]:
        """Everything as it is told."""
        told = self._grouped | {each for each in self._always if self._is_told(each)}
        if self._detail == _EXACT:
            return told | self._plain
        if self._detail == _FIRST:
            return told | set(self._coarse)
        return told | {Wanted(_EVERYTHING, b"", True), _CHANNELS, _PIPELINES}


def coarsened(wanted: Wanted) -> Wanted:
    """Something that asks for all that is wanted, and for more, in fewer words."""
    if wanted.pattern.startswith(PIPELINE):
        return _PIPELINES
    first, dot, _ = wanted.pattern.partition(b".")
    if first in (b"*", _EVERYTHING):
        return Wanted(_EVERYTHING, b"", True)
    return Wanted(first + b".>" if dot else first, b"", True)


def _together(first: Change, second: Change) -> Change:
    """Two changes, one after the other, as one."""
    added = (set(first.added) - set(second.removed)) | set(second.added) - set(first.removed)
    removed = (set(first.removed) - set(second.added)) | set(second.removed) - set(first.added)
    return Change(tuple(sorted(added)), tuple(sorted(removed)))
