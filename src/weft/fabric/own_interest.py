"""What this gateway tells the others that it wants: as it is, or coarser where that is too much.

Above a limit, patterns without a group are told by their first elements only: the others then send
more than is wanted, which the router here leaves out, and never less. Requests are not drawn here
by that: whoever would answer them is told as a member of a group, or not at all. Members of groups
are told as they are: of what is for one of them, nothing may come where nobody is.
"""

from collections import Counter
from collections.abc import Iterable

from weft.fabric.wanted import NO_CHANGE, Change, WantedSet
from weft.fabric.words import Wanted

EXACT_MAX = 50_000

_ALL = b">"


class OwnInterest:
    """What connections here want, and what of it others are told."""

    def __init__(self, always: Iterable[bytes] = (), exact_max: int = EXACT_MAX) -> None:
        self.told = WantedSet()
        # What this gateway wants itself, whoever is connected.
        self._always = [Wanted(pattern, b"", True) for pattern in always]
        self._exact_max = exact_max
        self._plain: set[Wanted] = set()
        self._grouped: set[Wanted] = set()
        # How many patterns each coarse one stands for, while they are told coarsely.
        self._coarse: Counter[Wanted] | None = None

    @property
    def is_coarse(self) -> bool:
        """Say if more is told than is wanted."""
        return self._coarse is not None

    def change(self, changes: Iterable[tuple[Wanted, bool]]) -> Change:
        """Connections began to want, True, or ceased to; what others are to be told of it."""
        # The last word on each: what was taken back may be asked for again.
        told: dict[Wanted, bool] = {}
        for wanted, is_added in changes:
            kept = self._grouped if wanted.group else self._plain
            if is_added:
                kept.add(wanted)
            else:
                kept.discard(wanted)
            self._tell(wanted, is_added, told)
        for wanted in self._always:
            told[wanted] = self._is_told(wanted)
        change = self.told.apply(
            [wanted for wanted, is_added in told.items() if is_added],
            [wanted for wanted, is_added in told.items() if not is_added],
        )
        if self._is_switch_due():
            change = _together(change, self._switch())
        if change != NO_CHANGE:
            self.told.version += 1
        return change

    def _tell(self, wanted: Wanted, is_added: bool, told: dict[Wanted, bool]) -> None:
        coarse = self._coarse
        if coarse is None or wanted.group:
            told[wanted] = is_added
            return
        prefix = coarsened(wanted)
        coarse[prefix] += 1 if is_added else -1
        if coarse[prefix] == 0:
            del coarse[prefix]
            told[prefix] = False
        else:
            told[prefix] = True

    def _is_switch_due(self) -> bool:
        if self._coarse is None:
            return len(self._plain) > self._exact_max
        return len(self._plain) <= self._exact_max // 2

    def _switch(self) -> Change:
        if self._coarse is None:
            self._coarse = Counter(map(coarsened, self._plain))
            told = set(self._coarse)
        else:
            self._coarse = None
            told = self._plain
        own = {each for each in self._always if self._is_told(each)}
        return self.told.become(told | self._grouped | own)

    def _is_told(self, own: Wanted) -> bool:
        """Say if what this gateway wants is told: not if connections answer requests to it, too."""
        return self.is_coarse or own._replace(is_listener=False) not in self._plain


def coarsened(wanted: Wanted) -> Wanted:
    """Something that asks for all that is wanted, and for more, in fewer words."""
    first, dot, _ = wanted.pattern.partition(b".")
    if first in (b"*", _ALL):
        return Wanted(_ALL, b"", True)
    return Wanted(first + b".>" if dot else first, b"", True)


def _together(first: Change, second: Change) -> Change:
    """Two changes, one after the other, as one."""
    added = (set(first.added) - set(second.removed)) | set(second.added) - set(first.removed)
    removed = (set(first.removed) - set(second.added)) | set(second.removed) - set(first.added)
    return Change(tuple(sorted(added)), tuple(sorted(removed)))
