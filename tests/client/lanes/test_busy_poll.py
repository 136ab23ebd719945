import os
from collections import deque
from collections.abc import Callable
from itertools import pairwise

import pytest

from weft.client.lanes.busy_poll import LOOK_S, SKIPPED_MAX, Looking, has_cores


class Loop:
    """A loop that takes its turns when it is told to, and a clock."""

    def __init__(self, *, is_wanted: bool = True) -> None:
        self.now = 0.0
        self.soon: deque[Callable[[], None]] = deque()
        self.looking = Looking(self.soon.append, lambda: self.now, is_wanted=is_wanted)

    def is_resting(self) -> bool:
        return not self.soon

    def turn(self, passed_s: float = 0.0) -> None:
        self.now += passed_s
        self.soon.popleft()()

    def look_in_vain(self) -> bool:
        """Expect something that does not come; say if it was looked for."""
        self.looking.begin()
        if self.is_resting():
            return False
        self.turn(LOOK_S)
        assert self.is_resting()
        return True


def test_a_look_goes_on_until_something_comes() -> None:
    loop = Loop()
    loop.looking.begin()
    for _ in range(3):
        loop.turn(LOOK_S / 4)
        assert not loop.is_resting()
    loop.looking.came()
    loop.turn()
    assert loop.is_resting()


def test_a_look_lasts_no_longer_whatever_else_is_expected_meanwhile() -> None:
    loop = Loop()
    loop.looking.begin()
    loop.turn(LOOK_S / 2)
    loop.looking.begin()
    assert len(loop.soon) == 1
    loop.turn(LOOK_S / 2)
    assert loop.is_resting()


def test_the_more_looks_are_in_vain_the_fewer_there_are() -> None:
    loop = Loop()
    looks = [at for at in range(1000) if loop.look_in_vain()]
    pauses = [later - earlier - 1 for earlier, later in pairwise(looks)]
    assert pauses[:7] == [1, 2, 4, 8, 16, 32, 64]
    assert set(pauses[7:]) == {SKIPPED_MAX}


def test_one_that_was_not_in_vain_makes_up_for_all() -> None:
    loop = Loop()
    while not loop.look_in_vain() or loop.look_in_vain():
        pass
    while loop.is_resting():
        loop.looking.begin()
    loop.looking.came()
    loop.turn()
    assert loop.look_in_vain()
    # What comes when nobody looks says nothing.
    loop.looking.came()
    assert [loop.look_in_vain() for _ in range(2)] == [False, True]


def test_nobody_looks_who_was_told_not_to() -> None:
    loop = Loop(is_wanted=False)
    assert not loop.look_in_vain()


def test_a_program_that_may_use_one_core_has_no_other_for_whoever_answers() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert not has_cores()
    finally:
        os.sched_setaffinity(0, allowed)
    assert has_cores() == (len(allowed) > 1)


@pytest.mark.parametrize(("cores", "are_enough"), [(None, False), (1, False), (2, True)])
def test_where_nobody_says_which_cores_may_be_used_all_count(
    monkeypatch: pytest.MonkeyPatch, cores: int | None, *, are_enough: bool
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert has_cores() == are_enough
